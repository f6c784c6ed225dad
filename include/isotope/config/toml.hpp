#pragma once
/// Reads TOML 1.0 configurations by toml++: tables, dotted keys and scalar values. Arrays are refused, because no field is one.
#include <toml++/toml.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <isotope/config/entry.hpp>
#include <isotope/config/toml_guard.hpp>
#include <isotope/core/error.hpp>
#include <isotope/io/json_text.hpp>

namespace isotope::config {

namespace detail {

inline failure not_toml(std::string what, const std::string& path, std::size_t line) {
  return fail(errc::bad_format, "not TOML: " + std::move(what), path + ":" + std::to_string(line), "correct the line");
}

inline entry entry_of(const toml::node& node, std::string key, const std::string& path) {
  entry e{std::move(key), {}, written_as::other, path + ":" + std::to_string(node.source().begin.line)};
  if (const auto* text = node.as_string()) {
    e.form = written_as::string;
    e.value = text->get();
  } else if (const auto* boolean = node.as_boolean()) {
    e.form = written_as::boolean;
    e.value = boolean->get() ? "true" : "false";
  } else if (const auto* integer = node.as_integer()) {
    e.form = written_as::number;
    e.value = io::number_text(integer->get());
  } else if (const auto* number = node.as_floating_point()) {
    e.form = written_as::number;
    e.value = io::number_text(number->get());
    if (e.value.find_first_not_of("-0123456789") == e.value.npos) e.value += ".0";  // 64.0 is not an integer
  }
  return e;
}

using placed_entry = std::pair<toml::source_position, entry>;

/// Appends the scalars of a table. @error bad_format: a key that no field can have
inline result<void> flatten(const toml::table& table, const std::string& prefix, const std::string& path, std::vector<placed_entry>& out) {
  for (const auto& [name, node] : table) {
    if (name.str().empty() || name.str().find('.') != std::string_view::npos)
      return not_toml("no field is named " + io::json_string(name.str()), path, name.source().begin.line);
    const std::string key = prefix + std::string(name.str());
    if (const auto* inner = node.as_table()) {
      if (auto r = flatten(*inner, key + ".", path, out); !r) return r;
    } else {
      out.emplace_back(node.source().begin, entry_of(node, key, path));
    }
  }
  return {};
}

}  // namespace detail

/// Flattens a TOML document to keys such as `model.width`, in the order of the text. `path` names it in failures.
///
/// @error bad_format with path:line
inline result<layer> parse_toml(std::string_view text, const std::string& path) {
  if (const auto [what, line] = guard_toml(text); !what.empty()) return detail::not_toml(what, path, line);
  std::vector<detail::placed_entry> found;
  try {
    if (auto r = detail::flatten(toml::parse(text), {}, path, found); !r) return std::move(r).error();
  } catch (const toml::parse_error& error) { return detail::not_toml(std::string(error.description()), path, error.source().begin.line); }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  layer out;
  for (auto& [position, e] : found) out.push_back(std::move(e));
  return out;
}

}  // namespace isotope::config
