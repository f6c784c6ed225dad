#pragma once
/// What a run says of its plan as JSON lines, beside the events of json_line.hpp: where its tensors lie, and where the time of a step goes.
#include <isotope/io/json_text.hpp>
#include <isotope/plan/pass.hpp>
#include <isotope/plan/report/arena.hpp>
#include <isotope/train/kernel_times.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace isotope::train {

namespace detail {

inline void add_field(std::string& r, std::string_view key, std::int64_t n) {
  r.append(",\"").append(key).append("\":") += std::to_string(n);
}
inline void add_field(std::string& r, std::string_view key, std::string_view text) {
  r.append(",\"").append(key).append("\":") += io::json_string(text);
}
/// Separates the items of an array.
inline void begin_item(std::string& r) { r += r.back() == '[' ? "{" : ",{"; }

}  // namespace detail

/// {"event":"arena","step":..,"bytes":..,"launches":..,"regions":[{"name":..,"at":..,"bytes":..}],"parts":[{"name":"forward","first":..}],
/// "tensors":[{"name":..,"region":..,"at":..,"bytes":..,"first":..,"last":..}]}
///
/// Bytes are those of arena_map_of. A launch is a step of the plan; `first` and `last` count them from 0, `region` counts the regions.
/// @param step  training steps before the line
inline std::string arena_line(const plan_view& p, std::int64_t step) {
  using detail::add_field, detail::begin_item;
  const arena_map m = arena_map_of(p);
  std::string r = R"({"event":"arena")";
  add_field(r, "step", step), add_field(r, "bytes", m.bytes), add_field(r, "launches", m.steps);
  r += R"(,"regions":[)";
  for (std::size_t k = 0; k < m.region.size(); ++k) {
    begin_item(r);
    r += R"("name":)" + io::json_string(to_text(value_kind(k)));
    add_field(r, "at", m.start[k]), add_field(r, "bytes", m.region[k]);
    r += '}';
  }
  r += R"(],"parts":[)";
  const auto parts = passes_of(p);
  for (const pass part : {pass::forward, pass::backward, pass::optimizer})
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i] != part) continue;
      begin_item(r);
      r += R"("name":)" + io::json_string(name_of(part));
      add_field(r, "first", std::int64_t(i));
      r += '}';
      break;
    }
  r += R"(],"tensors":[)";
  for (const placed_tensor& t : m.tensors) {
    begin_item(r);
    r += R"("name":)" + io::json_string(t.name);
    add_field(r, "region", std::int64_t(t.region)), add_field(r, "at", t.at), add_field(r, "bytes", t.bytes);
    add_field(r, "first", t.first), add_field(r, "last", t.last);
    r += '}';
  }
  return r + "]}";
}

/// {"event":"kernels","step":..,"launches":[{"part":..,"op":..,"kernel":..,"set":..,"times":..,"bytes":..,"usec":..}]}, as kernel_time says; and
/// "predicted_usec" where there is one.
/// @param step  the training step that was timed
inline std::string kernels_line(const std::vector<kernel_time>& all, std::int64_t step) {
  using detail::add_field, detail::begin_item;
  std::string r = R"({"event":"kernels")";
  add_field(r, "step", step);
  r += R"(,"launches":[)";
  for (const kernel_time& k : all) {
    begin_item(r);
    r += R"("part":)" + io::json_string(k.part);
    add_field(r, "op", k.op), add_field(r, "kernel", k.kernel), add_field(r, "set", k.set), add_field(r, "times", k.times),
        add_field(r, "bytes", k.bytes);
    r += R"(,"usec":)" + fixed(k.usec, 3);
    if (k.predicted_usec) r += R"(,"predicted_usec":)" + fixed(*k.predicted_usec, 3);
    r += '}';
  }
  return r + "]}";
}

}  // namespace isotope::train
