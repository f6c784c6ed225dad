#pragma once
/// Names fields as variables and flags, and provides the variable layer. Nothing here reads the process environment: programs capture it once and
/// pass a map.
#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <isotope/config/entry.hpp>
#include <isotope/config/reflect.hpp>
#include <isotope/config/suggest.hpp>
#include <isotope/core/error.hpp>

namespace isotope::config {

inline constexpr std::string_view variable_prefix = "ISOTOPE_";

/// model.width -> ISOTOPE_MODEL_WIDTH
inline std::string variable_of(std::string_view key) {
  std::string out(variable_prefix);
  for (const char c : key) out += c == '.' ? '_' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return out;
}

/// model.width -> --model-width
inline std::string flag_of(std::string_view key) {
  std::string out = "--";
  for (const char c : key) out += c == '.' || c == '_' ? '-' : c;
  return out;
}

/// Returns the field that a variable names: the one with this full key, else the only one whose last part it is. Null if there is none or several.
inline const field* named_by(std::string_view variable, std::span<const field> fields) {
  const field* short_of = nullptr;
  int matches = 0;
  for (const field& f : fields) {
    if (variable_of(f.key) == variable) return &f;
    if (variable_of(std::string_view(f.key).substr(f.key.rfind('.') + 1)) == variable) short_of = &f, ++matches;
  }
  return matches == 1 ? short_of : nullptr;
}

/// Variables that name another field than they spell, or that no field's key spells: ISOTOPE_SCHEDULE -> diagnose.step_list.
using variable_aliases = std::map<std::string, std::string, std::less<>>;

/// Returns the variables of a field: that of its full key, that of its last part if this is unambiguous, then its aliases.
inline std::vector<std::string> variables_of(const field& f, std::span<const field> fields, const variable_aliases& aliases = {}) {
  std::vector<std::string> out = {variable_of(f.key)};
  const std::string last = variable_of(std::string_view(f.key).substr(f.key.rfind('.') + 1));
  if (last != out[0] && named_by(last, fields) == &f && !aliases.contains(last)) out.push_back(last);
  for (const auto& [name, key] : aliases)
    if (key == f.key) out.push_back(name);
  return out;
}

/// Reads variables that begin with ISOTOPE_ as a layer; others are ignored.
///
/// @param known  variables that something else reads, by full name
/// @error unknown_key, with a suggestion
inline result<layer> variable_layer(const std::map<std::string, std::string>& variables, std::span<const field> fields,
                                    std::span<const std::string> known, const variable_aliases& aliases = {}) {
  layer out;
  for (const auto& [name, value] : variables) {
    if (!name.starts_with(variable_prefix)) continue;
    const auto alias = aliases.find(name);
    const field* meant = named_by(alias == aliases.end() ? name : variable_of(alias->second), fields);
    if (meant == nullptr && std::find(known.begin(), known.end(), name) != known.end()) continue;
    if (meant == nullptr) {
      std::vector<std::string> names;
      for (const field& f : fields)
        for (std::string& spelling : variables_of(f, fields, aliases)) names.push_back(std::move(spelling));
      names.insert(names.end(), known.begin(), known.end());
      return fail(errc::unknown_key, "no configuration field has this variable", "variable " + name, did_you_mean(name, names, "unset it"));
    }
    out.push_back({meant->key, value, written_as::raw, "variable " + name});
  }
  return out;
}

}  // namespace isotope::config
