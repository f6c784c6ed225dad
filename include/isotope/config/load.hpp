#pragma once
/// Layered configuration: default initialisers < named size < file < variables < flags, field by field, each value with its origin.
#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <isotope/config/arguments.hpp>
#include <isotope/config/entry.hpp>
#include <isotope/config/file.hpp>
#include <isotope/config/flags.hpp>
#include <isotope/config/reflect.hpp>
#include <isotope/config/suggest.hpp>
#include <isotope/core/error.hpp>

namespace isotope::config {

/// A named base, e.g. {"char-gpt-cpu", {...}}.
template <class C> struct named_size {
  std::string name;
  C value;
};

/// The program's inputs. A program fills `variables` from its environment, once, in main. `base` is the weakest layer above the named size: what a
/// resumed run was started with.
struct sources {
  std::string file;                              // a path; if empty, --config or ISOTOPE_CONFIG may name one
  std::map<std::string, std::string> variables;  // only ISOTOPE_* is read
  std::vector<std::string> arguments;            // without the program's name
  layer base = {};
};

/// The program's own knowledge besides its configuration struct.
struct rules {
  std::string default_size;                  // used when no layer names one; empty: the default initialisers
  std::vector<std::string> required;         // keys that some layer above the default initialisers must set
  std::vector<std::string> switches;         // flags without value: help, version, print-config
  std::vector<std::string> known_variables;  // ISOTOPE_* names that something else reads, too
  variable_aliases aliases = {};             // ISOTOPE_* names of fields whose keys are spelled differently
};

/// Where a field's value comes from: "default", "size char-gpt", "run.toml:3", "variable ISOTOPE_STEPS", "flag --steps".
struct setting {
  std::string key, value, origin;
};

template <class C> struct loaded {
  C value;
  std::string size;                   // empty: none
  std::vector<setting> settings;      // in the order of declaration
  std::vector<std::string> switches;  // those given, without the dashes
  bool has_switch(std::string_view name) const { return std::find(switches.begin(), switches.end(), name) != switches.end(); }
};

/// "char-gpt, char-gpt-cpu, debug-tiny"
template <class C> std::string size_list(std::span<const named_size<C>> sizes) {
  std::string out;
  for (const auto& s : sizes) out += (out.empty() ? "" : ", ") + s.name;
  return out;
}

namespace detail {

/// Sets one key of C and its origin. @error unknown_key with a suggestion, or as assign
template <class C> result<void> apply(loaded<C>& out, const entry& e) {
  result<void> status;
  std::size_t at = 0;
  bool found = false;
  for_each_field(out.value, [&](const std::string& key, auto& member) {
    if (key == e.key) {
      found = true;
      status = assign(member, e);
      out.settings[at] = {key, json_of(member), e.where};
    }
    ++at;
  });
  if (found) return status;
  std::vector<std::string> known = {"size"};
  for (const setting& s : out.settings) known.push_back(s.key);
  const bool group = std::any_of(known.begin(), known.end(), [&](const std::string& k) { return k.starts_with(e.key + "."); });
  if (group) return fail(errc::bad_format, "'" + e.key + "' is a group of fields, not a value", e.where, "write a table");
  return fail(errc::unknown_key, "unknown key '" + e.key + "'", e.where, did_you_mean(e.key, known, "--print-config lists the keys"));
}

/// Removes `key` from a layer and returns its last entry.
inline entry take(layer& from, std::string_view key) {
  entry last;
  for (const entry& e : from)
    if (e.key == key) last = e;
  std::erase_if(from, [&](const entry& e) { return e.key == key; });
  return last;
}

}  // namespace detail

/// Merges layers, weakest first, over the named size that the strongest layer with a `size` key asks for.
///
/// @error unknown_key (a key, a size), bad_format, invalid_argument, missing_value; each names layer and key
template <class C> result<loaded<C>> merge(std::span<const named_size<C>> sizes, std::vector<layer> layers, const rules& rule = {}) {
  loaded<C> out;
  entry size{"size", rule.default_size, written_as::raw, "the program"};
  for (layer& l : layers)
    if (entry asked = detail::take(l, "size"); !asked.key.empty()) size = std::move(asked);
  if (auto text = assign(out.size, size); !text) return std::move(text).error();
  const auto chosen = std::find_if(sizes.begin(), sizes.end(), [&](const auto& s) { return s.name == out.size; });
  if (chosen == sizes.end() && !out.size.empty()) {
    std::vector<std::string> known;
    for (const auto& s : sizes) known.push_back(s.name);
    const std::string near = nearest(out.size, known);
    return fail(errc::unknown_key, "no size is named '" + out.size + "'", size.where,
                (near.empty() ? "" : "did you mean '" + near + "'? ") + "the sizes are " + size_list(sizes));
  }
  const std::vector<field> defaults = fields_of(out.value);
  if (chosen != sizes.end()) out.value = chosen->value;
  const std::vector<field> base = fields_of(out.value);
  for (std::size_t i = 0; i < base.size(); ++i)
    out.settings.push_back({base[i].key, base[i].value, base[i].value == defaults[i].value ? "default" : "size " + out.size});
  for (const layer& l : layers)
    for (const entry& e : l)
      if (auto set = detail::apply(out, e); !set) return std::move(set).error();
  for (const std::string& key : rule.required)
    for (const setting& s : out.settings)
      if (s.key == key && s.origin == "default")
        return fail(errc::missing_value, "no layer gives it a value", "configuration key '" + key + "'",
                    "give " + flag_of(key) + ", set " + variable_of(key) + ", or write it in the file");
  return out;
}

/// Reads every layer and merges them. Besides the fields of C it understands `--size` and `--config`, ISOTOPE_SIZE and ISOTOPE_CONFIG, and `size` in
/// the file.
///
/// @error as merge, read_layer, variable_layer and read_flags
template <class C> result<loaded<C>> load(const sources& given, std::span<const named_size<C>> sizes, const rules& rule = {}) {
  auto fields = fields_of(C{});
  fields.push_back({"size", field_kind::text, {}});
  fields.push_back({"config", field_kind::text, {}});
  auto flags = read_flags(given.arguments, fields, rule.switches);
  if (!flags) return std::move(flags).error();
  auto variables = variable_layer(given.variables, fields, rule.known_variables, rule.aliases);
  if (!variables) return std::move(variables).error();

  const entry by_variable = detail::take(*variables, "config"), by_flag = detail::take(flags->entries, "config");
  const std::string& path = !by_flag.value.empty() ? by_flag.value : !by_variable.value.empty() ? by_variable.value : given.file;
  layer file;
  if (!path.empty()) {
    auto read = read_layer(path);
    if (!read) return std::move(read).error();
    file = *std::move(read);
  }
  auto merged = merge<C>(sizes, {given.base, std::move(file), *std::move(variables), std::move(flags->entries)}, rule);
  if (merged) merged->switches = std::move(flags->switches);
  return merged;
}

}  // namespace isotope::config
