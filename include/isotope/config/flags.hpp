#pragma once
/// The flag layer: CLI11 parses the words, with every field as an option.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <isotope/config/arguments.hpp>
#include <isotope/config/entry.hpp>
#include <isotope/config/reflect.hpp>
#include <isotope/config/suggest.hpp>
#include <isotope/core/error.hpp>

namespace isotope::config {

/// The flags as a layer, and which switches were given.
struct flag_layer {
  layer entries;
  std::vector<std::string> switches;  // without the dashes
};

namespace detail {

/// Returns the fields that `--name` can mean: the one with this full key, else those whose last part it is.
inline std::vector<const field*> meant_by(std::string_view flag, std::span<const field> fields) {
  std::vector<const field*> out;
  for (const field& f : fields)
    if (flag_of(f.key) == flag) return {&f};
  for (const field& f : fields)
    if (flag_of(std::string_view(f.key).substr(f.key.rfind('.') + 1)) == flag) out.push_back(&f);
  return out;
}

/// Returns the flags that mean this field and no other: by its full key, then by its last part.
inline std::vector<std::string> flags_of(const field& f, std::span<const field> fields) {
  std::vector<std::string> out = {flag_of(f.key)};
  const std::string last = flag_of(std::string_view(f.key).substr(f.key.rfind('.') + 1));
  if (const auto meant = meant_by(last, fields); last != out[0] && meant.size() == 1 && meant[0] == &f) out.push_back(last);
  return out;
}

/// A flag that CLI11 knows.
struct spelling {
  std::string flag;
  const field* meant = nullptr;  // null: a switch
  bool negates = false;
  const CLI::Option* option = nullptr;
};

inline std::vector<spelling> add_flags(CLI::App& app, std::span<const field> fields, std::span<const std::string> switches) {
  std::vector<spelling> out;
  const auto add = [&](std::string flag, const field* meant, bool negates) {
    if (app.get_option_no_throw(flag) != nullptr) return;
    const bool takes_value = meant != nullptr && meant->kind != field_kind::boolean;
    CLI::Option* option = takes_value ? app.add_option(flag)->expected(1) : app.add_flag(flag);
    out.push_back({std::move(flag), meant, negates, option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)});
  };
  for (const std::string& s : switches) add("--" + s, nullptr, false);
  for (const field& f : fields)
    for (std::string& flag : flags_of(f, fields)) add(std::move(flag), &f, false);
  for (const field& f : fields)
    if (f.kind == field_kind::boolean)
      for (const std::string& flag : flags_of(f, fields)) add("--no-" + flag.substr(2), &f, true);
  return out;
}

/// Returns the failure for a word that no option took.
inline failure stray(const std::string& word, std::span<const field> fields, std::span<const spelling> spellings) {
  if (!word.starts_with("--") || word.size() == 2)
    return fail(errc::invalid_argument, "'" + word + "' is not a flag", {}, "flags begin with two dashes, e.g. --steps 100");
  const std::string name = word.substr(0, word.find('='));
  if (const auto meant = meant_by(name, fields); meant.size() > 1) {
    std::string all;
    for (const field* f : meant) all += (all.empty() ? "" : " or ") + flag_of(f->key);
    return fail(errc::invalid_argument, "the flag is ambiguous", "flag " + name, "give " + all);
  }
  std::vector<std::string> known;
  for (const spelling& s : spellings)
    if (!s.negates) known.push_back(s.flag);
  return fail(errc::unknown_key, "unknown flag", "flag " + name, did_you_mean(name, known, "--help lists the flags"));
}

}  // namespace detail

/// Reads `--model-width 64`, `--model-width=64`, `--width 64` if only one field ends in it, and `--flag` and `--no-flag` for booleans. The last of
/// equal flags wins.
///
/// @param switches  flags without a value that the program itself handles, e.g. "help"
/// @error unknown_key with a suggestion; invalid_argument: ambiguous, not a flag, or a value where none belongs; missing_value
inline result<flag_layer> read_flags(std::span<const std::string> arguments, std::span<const field> fields,
                                     std::span<const std::string> switches) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  const auto spellings = detail::add_flags(app, fields, switches);
  const auto spelled = [&](const auto& is) { return std::find_if(spellings.begin(), spellings.end(), is); };
  const auto missing = [](const std::string& flag, field_kind kind) {
    return fail(errc::missing_value, "a value must follow", "flag " + flag, "give " + std::string(name_of(kind)));
  };

  std::vector<std::string> words;  // in reverse order, as CLI11 wants them
  for (auto word = arguments.rbegin(); word != arguments.rend(); ++word) {
    const auto equals = word->starts_with("--") ? word->find('=') : word->npos;
    const auto s = spelled([&](const auto& x) { return x.flag == word->substr(0, equals); });
    if (equals != word->npos && s != spellings.end() && (s->meant == nullptr || s->negates))
      return fail(errc::invalid_argument, "takes no value", "flag " + s->flag, "give " + s->flag + " alone");
    const bool empty = equals != word->npos && equals + 1 == word->size();  // CLI11 would take the next word for `--text=`
    if (empty) words.emplace_back();
    words.push_back(empty ? word->substr(0, equals) : *word);
  }
  bool cut_short = false;
  try {
    app.parse(words);
  } catch (const CLI::ArgumentMismatch&) { cut_short = true; } catch (const CLI::Error& error) {
    return fail(errc::invalid_argument, error.what(), "flags", "--help lists the flags");
  }
  if (const auto strays = app.remaining(); !strays.empty()) return detail::stray(strays[0], fields, spellings);
  if (cut_short) {
    const auto s = spelled([&](const auto& x) { return x.flag == arguments.back(); });
    return missing(arguments.back(), s == spellings.end() || s->meant == nullptr ? field_kind::text : s->meant->kind);
  }

  flag_layer out;
  std::map<const CLI::Option*, std::size_t> taken;
  for (const CLI::Option* option : app.parse_order()) {
    const auto s = spelled([&](const auto& x) { return x.option == option; });
    const std::string& value = option->results()[taken[option]++];
    if (s->meant == nullptr) {
      out.switches.push_back(s->flag.substr(2));
      continue;
    }
    const bool attached = std::find(arguments.begin(), arguments.end(), s->flag + "=" + value) != arguments.end();
    if (value.starts_with("--") && !attached) return missing(s->flag, s->meant->kind);
    out.entries.push_back({s->meant->key, s->negates ? "false" : value, written_as::raw, "flag " + s->flag});
  }
  return out;
}

/// What --help prints besides names, kinds and defaults.
struct help_words {
  std::string program, opening, closing;
  std::map<std::string, std::string, std::less<>> meanings;  // of fields by key, of switches by name
  std::vector<std::string> in_full;                          // keys shown in full, because their last part alone would be unclear
};

/// Returns the text of --help: every switch and field by its shortest flag, in the groups of the configuration file.
inline std::string flag_help(std::span<const field> fields, std::span<const std::string> switches, const help_words& words) {
  CLI::App app(words.opening, words.program);
  app.set_help_flag();
  app.footer(words.closing);
  app.get_formatter()->column_width(38);
  const auto meaning = [&](std::string_view name) {
    const auto found = words.meanings.find(name);
    return found == words.meanings.end() ? std::string() : found->second;
  };
  for (const field& f : fields) {
    const bool full = std::find(words.in_full.begin(), words.in_full.end(), f.key) != words.in_full.end();
    const auto flags = detail::flags_of(f, fields);
    const std::string& flag = full ? flags.front() : flags.back();
    CLI::Option* option = f.kind == field_kind::boolean ? app.add_flag(flag) : app.add_option(flag);
    if (f.kind != field_kind::boolean) {
      const bool quoted = f.value.size() >= 2 && f.value.front() == '"';  // a JSON string; its quotes are not shown
      option->type_name(f.kind == field_kind::text ? "TEXT" : f.kind == field_kind::integer ? "N" : "X");
      option->default_str(quoted ? f.value.substr(1, f.value.size() - 2) : f.value);
    }
    option->description(meaning(f.key));
    const auto dot = f.key.find('.');
    if (dot != f.key.npos) option->group("[" + f.key.substr(0, dot) + "]");
  }
  for (const std::string& s : switches) app.add_flag("--" + s)->description(meaning(s));
  return CLI::detail::find_and_replace(app.help(), "\n\n\n", "\n\n");
}

}  // namespace isotope::config
