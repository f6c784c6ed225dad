#pragma once
/// Reads the JSON lines of a run, and checks that every event has what the page shows of it.
#include <isotope/core/error.hpp>
#include <isotope/io/file.hpp>
#include <isotope/io/json.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace report_program {

namespace io = isotope::io;

/// What a member of an event must be.
enum class must_be : std::uint8_t {
  text,
  number,
  figure,
  maybe_figure,
  scalar,
  place,
  items
};  // figure: a number, or null for what JSON cannot hold

struct member_rule;
struct item_rule {
  std::string_view event;  // or the member of an event whose items are objects
  std::span<const member_rule> members;
};
struct member_rule {
  std::string_view key;
  must_be is = must_be::number;
};

inline constexpr member_rule step_rules[] = {{"step"},
                                             {"loss", must_be::figure},
                                             {"grad_norm", must_be::figure},
                                             {"lr", must_be::figure},
                                             {"ms", must_be::figure},
                                             {"tokens_per_s", must_be::figure}};
inline constexpr member_rule eval_rules[] = {{"step"}, {"val_loss", must_be::figure}};
inline constexpr member_rule done_rules[] = {
    {"steps"},         {"val_loss", must_be::figure}, {"best_val_loss", must_be::figure}, {"seconds", must_be::figure}, {"planned_bytes"},
    {"measured_bytes"}};
inline constexpr member_rule mesh_rules[] = {{"step"}, {"devices"}};
inline constexpr member_rule run_rules[] = {{"step"}, {"title", must_be::text}, {"settings", must_be::items}};
inline constexpr member_rule arena_rules[] = {
    {"step"}, {"bytes"}, {"launches"}, {"regions", must_be::items}, {"parts", must_be::items}, {"tensors", must_be::items}};
inline constexpr member_rule kernels_rules[] = {{"step"}, {"launches", must_be::items}};
inline constexpr member_rule settings_rules[] = {{"key", must_be::text}, {"value", must_be::scalar}, {"origin", must_be::text}};
inline constexpr member_rule regions_rules[] = {{"name", must_be::text}, {"at"}, {"bytes"}};
inline constexpr member_rule parts_rules[] = {{"name", must_be::text}, {"first"}};
inline constexpr member_rule tensors_rules[] = {
    {"name", must_be::text}, {"region", must_be::place}, {"at"}, {"bytes"}, {"first"}, {"last"}};
inline constexpr member_rule launches_rules[] = {{"part", must_be::text},
                                                 {"op", must_be::text},
                                                 {"kernel", must_be::text},
                                                 {"set", must_be::text},
                                                 {"times"},
                                                 {"bytes"},
                                                 {"usec"},
                                                 {"predicted_usec", must_be::maybe_figure}};
inline constexpr member_rule every_rules[] = {{"predicted_ms", must_be::maybe_figure}};

inline constexpr item_rule event_rules[] = {{"step", step_rules}, {"eval", eval_rules},   {"done", done_rules},      {"mesh", mesh_rules},
                                            {"run", run_rules},   {"arena", arena_rules}, {"kernels", kernels_rules}};
inline constexpr item_rule list_rules[] = {{"settings", settings_rules},
                                           {"regions", regions_rules},
                                           {"parts", parts_rules},
                                           {"tensors", tensors_rules},
                                           {"launches", launches_rules}};

inline const item_rule* rule_named(std::span<const item_rule> all, std::string_view name) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const item_rule& r) { return r.event == name; });
  return found == all.end() ? nullptr : &*found;
}

/// The value of a finite JSON number.
inline std::optional<double> number_of(const io::json& x) {
  double v = 0;
  const char* const end = x.text.data() + x.text.size();
  if (x.is != io::json::kind::number || std::from_chars(x.text.data(), end, v).ec != std::errc()) return std::nullopt;
  return v;
}

/// Returns what is wrong with the members of an object; empty: nothing. @param regions  how many an event `arena` has
inline std::string objection_to(const io::json& object, std::span<const member_rule> rules, std::size_t regions) {
  if (object.is != io::json::kind::object) return "is " + std::string(name_of(object.is)) + ", not an object";
  for (const member_rule& rule : rules) {
    const io::json* const x = object.find(rule.key);
    if (x == nullptr && rule.is == must_be::maybe_figure) continue;
    if (x == nullptr) return "has no '" + std::string(rule.key) + "'";
    using kind = io::json::kind;
    const bool null = x->is == kind::null;
    const auto number = number_of(*x);
    const char* wanted = nullptr;
    switch (rule.is) {
      case must_be::text: wanted = x->is == kind::string ? nullptr : "a string"; break;
      case must_be::number: wanted = number && *number >= 0 ? nullptr : "a number of at least 0"; break;
      case must_be::figure:
      case must_be::maybe_figure: wanted = null || number ? nullptr : "a finite number or null"; break;
      case must_be::scalar:
        wanted = x->is == kind::string || x->is == kind::boolean || number ? nullptr : "a string, a number or a boolean";
        break;
      case must_be::place:
        wanted = number && *number >= 0 && *number < double(regions) && *number == double(std::int64_t(*number)) ? nullptr
                                                                                                                 : "the number of a region";
        break;
      case must_be::items: wanted = x->is == kind::array ? nullptr : "an array"; break;
    }
    if (wanted != nullptr)
      return "has '" + std::string(rule.key) + "', which is " +
             (x->is == kind::number ? x->text.substr(0, 24) : std::string(name_of(x->is))) + ", not " + wanted;
    if (rule.is != must_be::items) continue;
    const item_rule* const items = rule_named(list_rules, rule.key);
    for (std::size_t i = 0; i < x->items.size(); ++i)
      if (const std::string why = objection_to(x->items[i], items->members, regions); !why.empty())
        return "has '" + std::string(rule.key) + "', whose item " + std::to_string(i) + " " + why;
  }
  return {};
}

struct read_run {
  std::string lines;          // of events that the page shows
  std::int64_t left_out = 0;  // lines of other events, and a last line that was cut short
};

/// @error as io::read_file; bad_format with the file and the line: not JSON, no event, a member that is missing or of another type; a file without events
inline isotope::result<read_run> read_log(const std::string& path) {
  const auto file = io::read_file(path);
  if (!file) return file.error();
  read_run run;
  const std::string_view text = file->text();
  std::int64_t number = 0;
  for (std::size_t at = 0, end = 0; at < text.size(); at = end + 1) {
    end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(" \t") == line.npos) continue;
    const std::string where = path + ":" + std::to_string(number);
    const auto refuse = [&](std::string why) {
      return isotope::fail(isotope::errc::bad_format, std::move(why), where,
                           "remove the line, or write the log again with isotope-train --json");
    };
    const auto event = io::parse_json(line, where, std::size_t(1) << 22);
    if (!event && end == text.size()) {  // of a run that was killed, or still goes on
      ++run.left_out;
      continue;
    }
    if (!event) return refuse(event.error().what);
    if (event->is != io::json::kind::object) return refuse("is " + std::string(name_of(event->is)) + ", not an event");
    const io::json* const kind = event->find("event");
    if (kind == nullptr || kind->is != io::json::kind::string) return refuse("has no 'event' with a name");
    const item_rule* const rule = rule_named(event_rules, kind->text);
    if (rule == nullptr) {
      ++run.left_out;
      continue;
    }
    const io::json* const regions = event->find("regions");
    const std::size_t count = regions == nullptr ? 0 : regions->items.size();
    std::string why = objection_to(*event, rule->members, count);
    if (why.empty()) why = objection_to(*event, every_rules, count);
    if (!why.empty()) return refuse("the event '" + kind->text + "' " + why);
    run.lines.append(line) += '\n';
  }
  if (run.lines.empty())
    return isotope::fail(isotope::errc::bad_format, "holds no event", path, "give a file that isotope-train --json wrote");
  return run;
}

}  // namespace report_program
