#pragma once
/// Writes docs/FLAGS.md from the settings themselves.
#include "../conform/command.hpp"
#include "../embed/command.hpp"
#include "../report/command.hpp"
#include "../support/registry.hpp"
#include "../tokenize/command.hpp"
#include "../tp-smoke/command.hpp"
#include "settings.hpp"

#include <isotope/config/flags.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace info_program {

namespace detail {

struct flag_row {
  std::string group, flag, variable, type, value, programs, meaning;
  bool same(const flag_row& o) const {
    return flag == o.flag && variable == o.variable && type == o.type && value == o.value && meaning == o.meaning;
  }
};

inline std::string in_cell(std::string text) {
  for (std::size_t at = text.find('|'); at != text.npos; at = text.find('|', at + 2)) text.insert(at, "\\");
  return text;
}
inline std::string quoted(const std::string& text) { return text.empty() ? "" : "`" + text + "`"; }

/// Returns a default as people write it: without quotes, nothing for an empty text.
inline std::string plain(const isotope::config::field& f) {
  return f.kind == isotope::config::field_kind::text ? f.value.size() < 2 ? "" : f.value.substr(1, f.value.size() - 2) : f.value;
}

/// Returns the rows of all programs in the order of their settings, with equal rows merged. A field whose last part would be unclear is named in
/// full.
inline std::vector<flag_row> flag_rows() {
  std::vector<flag_row> rows;
  const auto add = [&](flag_row row) {
    const auto known = std::find_if(rows.begin(), rows.end(), [&](const flag_row& r) { return r.same(row); });
    if (known == rows.end()) rows.push_back(std::move(row));
    else known->programs += ", " + row.programs;
  };
  for (const auto& p : support::registered_programs()) {
    for (const auto& f : p.fields) {
      const bool in_full = std::find(p.words.in_full.begin(), p.words.in_full.end(), f.key) != p.words.in_full.end();
      const auto flags = isotope::config::detail::flags_of(f, p.fields);
      const auto variables = isotope::config::variables_of(f, p.fields, support::variable_aliases());
      const auto dot = f.key.find('.');
      const auto meaning = p.words.meanings.find(f.key);
      add({dot == f.key.npos ? "" : f.key.substr(0, dot), in_full ? flags.front() : flags.back(),
           in_full ? variables.front() : variables.back(), std::string(name_of(f.kind)), plain(f), p.name,
           meaning == p.words.meanings.end() ? "" : meaning->second});
    }
    for (const auto& s : p.switches) add({"switches", "--" + s, "", "", "", p.name, p.words.meanings.find(s)->second});
  }
  return rows;
}

}  // namespace detail

inline std::string flag_table() {
  using detail::quoted;
  const auto rows = detail::flag_rows();
  std::string r =
      "# Flags and variables\n\n"
      "Written by `isotope-info --flags`; a test compares the two. Every field of every program is a flag, a variable and a key of its "
      "configuration\n"
      "file: `--model-width`, `ISOTOPE_MODEL_WIDTH`, `width` in the table `[model]`. Flags come before variables, variables before the "
      "file. The table\n"
      "shows the shortest names; the full ones, with the group in front, work too. Booleans are `--flag` and `--no-flag`, as variables `1` "
      "or `true`,\n"
      "`0` or `false`. A variable `ISOTOPE_...` that no program knows is refused with a suggestion. The library itself reads none: "
      "programs fill\n"
      "`isotope::gpu_options` from these, and a backend takes over what its `options` have: what is marked gpu does nothing on the "
      "processor.\n";
  std::vector<std::string> groups;
  for (const char* first : {"machine", "diagnose", "watch", ""}) groups.emplace_back(first);
  for (const auto& row : rows)
    if (std::find(groups.begin(), groups.end(), row.group) == groups.end()) groups.push_back(row.group);
  for (const auto& group : groups) {
    r += group.empty() ? "\n## Fields without a group\n\n" : group == "switches" ? "\n## Switches\n\n" : "\n## [" + group + "]\n\n";
    r += "| flag | variable | type | default | programs | meaning |\n|---|---|---|---|---|---|\n";
    for (const auto& row : rows)
      if (row.group == group)
        r += "| " + quoted(row.flag) + " | " + quoted(row.variable) + " | " + row.type + " | " + quoted(detail::in_cell(row.value)) +
             " | " + row.programs + " | " + detail::in_cell(row.meaning) + " |\n";
  }
  r += "\n## Flags of isotope-conform\n\nIts commands are in its --help; it has no variables but the one below.\n\n"
       "| flag | variable | type | default | programs | meaning |\n|---|---|---|---|---|---|\n";
  for (const auto& f : conform_program::flag_meanings)
    r += "| " + quoted(std::string(f.flag)) + " | " + (f.flag == "--require-device" ? "`ISOTOPE_REQUIRE_GPU`" : "") + " | " +
         std::string(f.value.empty() ? "switch" : f.value) + " |  | conform | " + detail::in_cell(std::string(f.meaning)) + " |\n";
  const auto section = [&](const std::string& name, const std::string& more, const auto& flags) {
    r += "\n## Flags of isotope-" + name + "\n\n" + more + "; it has no variables.\n\n" +
         "| flag | variable | type | default | programs | meaning |\n|---|---|---|---|---|---|\n";
    for (const auto& f : flags)
      r += "| " + quoted(std::string(f.flag)) + " |  | " + std::string(f.value.empty() ? "switch" : f.value) + " |  | " + name + " | " +
           detail::in_cell(std::string(f.meaning)) + " |\n";
  };
  section("embed", "[EMBEDDINGS.md](EMBEDDINGS.md) has examples", embed_program::flag_meanings);
  section("info", "Its switches are above, and [CALIBRATION.md](CALIBRATION.md) says what is ranked", rank_flags);
  section("report", "[REPORTS.md](REPORTS.md) shows what it makes", report_program::flag_meanings);
  section("tokenize", "Its commands are in its --help and in [TOKENIZERS.md](TOKENIZERS.md)", tokenize_program::flag_meanings);
  section("tp-smoke", "[DEVICES.md](DEVICES.md) says what it tests", tp_smoke_program::flag_meanings);
  r += "\n## Variables without a meaning\n\nOther transformer programs have these; here they are refused, with the reason.\n\n| variable | "
       "why |\n|---|---|\n";
  for (const auto& [name, why] : support::meaningless_variables()) r += "| `" + name + "` | " + why + " |\n";
  return r;
}

}  // namespace info_program
