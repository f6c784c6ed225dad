#pragma once
/// Attributes by name, as files and people write them.
#include <bit>
#include <string>

#include "../op/view.hpp"
#include "case_record.hpp"

namespace isotope::conform {

namespace attribute_detail {

inline void set_scalar(step_scalars& s, int which, double x) {
  switch (which) {
    case 0: s.seed = std::uint64_t(x); break;
    case 1: s.counter = std::uint64_t(x); break;
    case 2: s.optimizer_step = std::int64_t(x); break;
    case 3: s.learning_rate = float(x); break;
    case 4: s.beta1 = x; break;
    case 5: s.beta2 = x; break;
    case 6: s.epsilon = float(x); break;
    case 7: s.weight_decay = float(x); break;
    case 8: s.clip_norm = float(x); break;
    case 9: s.clip_value = float(x); break;
    case 10: s.gradient_scale = float(x); break;
    case 11: s.momentum = float(x); break;
    default: break;
  }
}
inline bool wholes(const io::json& j, std::vector<std::int64_t>& to) {
  if (j.is != io::json::kind::array) {
    std::int64_t x = 0;
    if (!read_whole(&j, x)) return false;
    to = {x};
    return true;
  }
  for (const io::json& x : j.items) {
    to.push_back(0);
    if (!read_whole(&x, to.back())) return false;
  }
  return to.size() <= std::size_t(max_rank);
}
/// Resolves an axis counted from either end. An axis out of range is left unchanged, and the op refuses it.
inline std::int64_t axis_of(std::int64_t k, int rank) { return k < 0 ? k + rank : k; }

inline void set_standard(const attribute_field& f, int rank, test_case& c) {
  auto& i = c.attr.i[f.slot % c.attr.i.size()];
  switch (f.kind) {
    case attribute_kind::integer:
    case attribute_kind::flag:
    case attribute_kind::format: i = std::int64_t(f.standard); break;
    case attribute_kind::axis: i = axis_of(std::int64_t(f.standard), rank); break;
    case attribute_kind::axes: i = (std::int64_t(1) << rank) - 1; break;
    case attribute_kind::number: c.attr.f[f.slot] = f.standard; break;
    case attribute_kind::number_bits: i = std::bit_cast<std::int64_t>(f.standard); break;
    case attribute_kind::scalar: set_scalar(c.scalars, f.slot, f.standard); break;
    default: break;
  }
}
/// Describes the form that a value must have.
constexpr std::string_view form_of(attribute_kind k) {
  switch (k) {
    case attribute_kind::integer:
    case attribute_kind::axis: return "a whole number of 64 bits";
    case attribute_kind::number:
    case attribute_kind::number_bits: return "a number, or \"inf\", \"-inf\", \"nan\"";
    case attribute_kind::flag: return "true or false";
    case attribute_kind::axes: return "at most 6 axes, or null for all of them";
    case attribute_kind::extents: return "at most 6 sizes from 0 to 2^31; one of them may be -1, for what remains";
    case attribute_kind::order: return "a list of at most 6 axes";
    case attribute_kind::format: return "the name of a format";
    case attribute_kind::format_or_none: return "the name of a format, or null";
    case attribute_kind::scalar: return "a number from 0 to 2^63";
  }
  return "another value";
}
/// Returns a value as it was written, shortened to fit a line.
inline std::string shown(const io::json& j) {
  constexpr std::size_t most = 80;
  const std::string text = canonical(j);
  return text.size() <= most ? text : text.substr(0, most) + "...";
}

/// Returns false if the attribute cannot have the value.
inline bool set_given(const attribute_field& f, const io::json& j, test_case& c) {
  const int rank = c.in.empty() ? 0 : c.in[0].dims.rank;
  auto& i = c.attr.i[f.slot % c.attr.i.size()];
  double x = 0;
  dtype t{};
  std::vector<std::int64_t> list;
  switch (f.kind) {
    case attribute_kind::integer: return read_whole(&j, i);
    case attribute_kind::flag: i = j.boolean ? 1 : 0; return j.is == io::json::kind::boolean;
    case attribute_kind::number: return read_number(&j, c.attr.f[f.slot]);
    case attribute_kind::number_bits:
      if (!read_number(&j, x)) return false;
      i = std::bit_cast<std::int64_t>(x);
      return true;
    case attribute_kind::axis:
      if (!read_whole(&j, i)) return false;
      i = axis_of(i, rank);
      return true;
    case attribute_kind::axes:
      if (j.is == io::json::kind::null) return true;
      if (!wholes(j, list)) return false;
      if (!list.empty()) i = 0;
      for (const auto k : list) {
        const auto a = axis_of(k, rank);
        i |= a >= 0 && a < rank ? std::int64_t(1) << a : std::int64_t(-1);
      }
      return true;
    case attribute_kind::extents: {
      if (j.is != io::json::kind::array || !wholes(j, list) || std::count(list.begin(), list.end(), -1) > 1) return false;
      std::int64_t known = 1;
      for (const auto n : list)
        known *= n >= 0 && n <= (std::int64_t(1) << 31) && known <= (std::int64_t(1) << 31) ? std::max<std::int64_t>(n, 1) : 1;
      for (std::size_t k = 0; k < list.size(); ++k) {
        if (list[k] == -1 && !c.in.empty()) list[k] = c.in[0].dims.count() / known;
        if (list[k] < 0 || list[k] > (std::int64_t(1) << 31)) return false;
        c.attr.i[k] = list[k];
      }
      c.attr.i[6] = std::int64_t(list.size());
      return true;
    }
    case attribute_kind::order:
      if (j.is != io::json::kind::array || !wholes(j, list)) return false;
      for (std::size_t k = 0; k < list.size(); ++k) c.attr.i[k] = axis_of(list[k], rank);
      return true;
    case attribute_kind::format:
      if (!format_named(j.text, t)) return false;
      i = std::int64_t(t);
      return true;
    case attribute_kind::format_or_none:
      if (j.is == io::json::kind::null) return true;
      if (!format_named(j.text, t)) return false;
      i = 1 + std::int64_t(t);
      return true;
    case attribute_kind::scalar:
      if (!read_number(&j, x) || !(x >= 0) || !(x < 0x1p63)) return false;
      set_scalar(c.scalars, f.slot, x);
      return true;
  }
  return false;
}

}  // namespace attribute_detail

/// Fills attributes and scalars of c, whose operands are known, from an object; whatever is missing takes its default.
/// @error unknown_key, missing_value: the op has no such attribute, or needs one; bad_format: the attribute cannot have such a value
inline result<void> read_attributes(const io::json* given, test_case& c) {
  using namespace attribute_detail;
  const int rank = c.in.empty() ? 0 : c.in[0].dims.rank;
  std::string names;
  for (const attribute_field& f : c.of->fields) {
    names += (names.empty() ? "" : ", ") + std::string(f.name);
    set_standard(f, rank, c);
    const io::json* j = given == nullptr ? nullptr : given->find(f.name);
    if (j == nullptr && f.required)
      return fail(errc::missing_value, "needs the attribute '" + std::string(f.name) + "'", std::string(c.of->name), "add it");
    if (j != nullptr && !set_given(f, *j, c))
      return fail(errc::bad_format, "takes no '" + std::string(f.name) + "' of " + shown(*j), std::string(c.of->name),
                  "give " + std::string(form_of(f.kind)));
  }
  if (given != nullptr)
    for (const auto& m : given->members)
      if (std::none_of(c.of->fields.begin(), c.of->fields.end(), [&](const attribute_field& f) { return f.name == m.key; }))
        return fail(errc::unknown_key, "has no attribute '" + m.key + "'", std::string(c.of->name),
                    names.empty() ? "it has none" : "it has " + names);
  if (c.of->complete != nullptr) c.of->complete(c.attr, c.in.size());
  return {};
}

}  // namespace isotope::conform
