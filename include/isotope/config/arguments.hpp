#pragma once
/// The variable and flag layers. Nothing here reads the process environment: programs capture it once and pass a map.
#include <algorithm>
#include <cctype>
#include <map>
#include <span>
#include <string>
#include <string_view>
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

/// Variables that begin with ISOTOPE_ as a layer; others are not looked at.
///
/// @param known  variables that something else reads, by full name
/// @error unknown_key, with a suggestion
inline result<layer> variable_layer(const std::map<std::string, std::string>& variables, std::span<const field> fields,
                                    std::span<const std::string> known) {
  layer out;
  std::vector<std::string> names;
  for (const field& f : fields) names.push_back(variable_of(f.key));
  for (const auto& [name, value] : variables) {
    if (!name.starts_with(variable_prefix) || std::find(known.begin(), known.end(), name) != known.end()) continue;
    const auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end()) {
      names.insert(names.end(), known.begin(), known.end());
      return fail(errc::unknown_key, "no configuration field has this variable", "variable " + name, did_you_mean(name, names, "unset it"));
    }
    out.push_back({fields[static_cast<std::size_t>(at - names.begin())].key, value, written_as::raw, "variable " + name});
  }
  return out;
}

/// Flags as a layer, and the switches among them.
struct flag_layer {
  layer entries;
  std::vector<std::string> switches;  // without the dashes
};

namespace detail {

/// The fields that `--name` can mean: the one with this full key, else those whose last part it is.
inline std::vector<const field*> meant_by(std::string_view flag, std::span<const field> fields) {
  std::vector<const field*> out;
  for (const field& f : fields)
    if (flag_of(f.key) == flag) return {&f};
  for (const field& f : fields)
    if (flag_of(std::string_view(f.key).substr(f.key.rfind('.') + 1)) == flag) out.push_back(&f);
  return out;
}

}  // namespace detail

/// Reads `--model-width 64`, `--model-width=64`, `--width 64` if one field only ends in it, `--flag` and `--no-flag` for booleans.
/// The last of equal flags wins.
///
/// @param switches  flags without a value that the program itself handles, e.g. "help"
/// @error unknown_key with a suggestion; invalid_argument: ambiguous, or not a flag; missing_value
inline result<flag_layer> read_flags(std::span<const std::string> arguments, std::span<const field> fields,
                                     std::span<const std::string> switches) {
  flag_layer out;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (!argument.starts_with("--") || argument.size() == 2)
      return fail(errc::invalid_argument, "'" + argument + "' is not a flag", {}, "flags begin with two dashes, e.g. --steps 100");
    const auto equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    if (std::find(switches.begin(), switches.end(), argument.substr(2)) != switches.end()) {
      out.switches.push_back(argument.substr(2));
      continue;
    }
    auto meant = detail::meant_by(name, fields);
    bool negated = false;
    if (meant.empty() && name.starts_with("--no-") && equals == argument.npos) {
      meant = detail::meant_by("--" + name.substr(5), fields);
      std::erase_if(meant, [](const field* f) { return f->kind != field_kind::boolean; });
      negated = !meant.empty();
    }
    if (meant.empty()) {
      std::vector<std::string> known;
      for (const std::string& s : switches) known.push_back("--" + s);
      for (const field& f : fields) {
        known.push_back(flag_of(f.key));
        if (const std::string leaf = flag_of(std::string_view(f.key).substr(f.key.rfind('.') + 1));
            detail::meant_by(leaf, fields).size() == 1)
          known.push_back(leaf);
      }
      return fail(errc::unknown_key, "unknown flag", "flag " + name, did_you_mean(name, known, "--help lists the flags"));
    }
    if (meant.size() > 1) {
      std::string all;
      for (const field* f : meant) all += (all.empty() ? "" : " or ") + flag_of(f->key);
      return fail(errc::invalid_argument, "the flag is ambiguous", "flag " + name, "give " + all);
    }
    std::string value;
    if (equals != argument.npos) value = argument.substr(equals + 1);
    else if (meant[0]->kind == field_kind::boolean) value = negated ? "false" : "true";
    else if (i + 1 < arguments.size() && !arguments[i + 1].starts_with("--")) value = arguments[++i];
    else return fail(errc::missing_value, "a value must follow", "flag " + name, "give " + std::string(name_of(meant[0]->kind)));
    out.entries.push_back({meant[0]->key, std::move(value), written_as::raw, "flag " + name});
  }
  return out;
}

}  // namespace isotope::config
