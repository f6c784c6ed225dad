#pragma once
/// The file layer: a partial configuration in TOML or JSON, flattened to keys such as `model.width`.
#include <toml++/toml.h>

#include <cstddef>
#include <string>
#include <string_view>

#include <isotope/config/entry.hpp>
#include <isotope/config/key_depth.hpp>
#include <isotope/core/error.hpp>
#include <isotope/io/file.hpp>
#include <isotope/io/json.hpp>

namespace isotope::config {

namespace detail {

inline std::string at_line(const std::string& path, std::size_t line) { return path + ":" + std::to_string(line); }

inline void flatten(const toml::table& table, const std::string& prefix, const std::string& path, layer& out) {
  for (const auto& [name, node] : table) {
    const std::string key = prefix + std::string(name.str());
    if (const auto* inner = node.as_table()) {
      flatten(*inner, key + ".", path, out);
      continue;
    }
    entry e{key, {}, written_as::other, at_line(path, node.source().begin.line)};
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
      if (e.value.find_first_not_of("-0123456789") == std::string::npos) e.value += ".0";  // 64.0 is not a whole number
    } else {
      e.value = node.is_array() ? "an array" : "a date or time";
    }
    out.push_back(std::move(e));
  }
}

inline void flatten(const io::json& object, const std::string& prefix, const std::string& path, layer& out) {
  for (const io::json_member& m : object.members) {
    using kind = io::json::kind;
    if (m.value.is == kind::object) {
      flatten(m.value, prefix + m.key + ".", path, out);
      continue;
    }
    entry e{prefix + m.key, m.value.text, written_as::other, at_line(path, static_cast<std::size_t>(m.value.line))};
    if (m.value.is == kind::string) e.form = written_as::string;
    else if (m.value.is == kind::number) e.form = written_as::number;
    else if (m.value.is == kind::boolean) e.form = written_as::boolean, e.value = m.value.boolean ? "true" : "false";
    else e.value = m.value.is == kind::null ? "null" : "an array";
    out.push_back(std::move(e));
  }
}

inline result<layer> parse_toml(std::string_view text, const std::string& path) {
  constexpr int most_dots = 32;
  if (const std::size_t line = line_of_deep_key(text, most_dots); line != 0)
    return fail(errc::bad_format, "not a configuration: a key of more than " + std::to_string(most_dots) + " dots", at_line(path, line),
                "correct the line");
  layer out;
  try {
    flatten(toml::parse(text, std::string_view(path)), {}, path, out);
  } catch (const toml::parse_error& error) {
    return fail(errc::bad_format, "not TOML: " + std::string(error.description()), at_line(path, error.source().begin.line),
                "correct the line");
  }
  return out;
}

inline result<layer> parse_json_layer(std::string_view text, const std::string& path) {
  auto root = io::parse_json(text, path);
  if (!root) return std::move(root).error();
  if (root->is != io::json::kind::object)
    return fail(errc::bad_format, std::string(name_of(root->is)) + " is not a configuration", path, "write an object");
  layer out;
  flatten(*root, {}, path, out);
  return out;
}

}  // namespace detail

/// A file's text as a layer; the extension of `path` chooses the format.
///
/// @error invalid_argument: another extension, more than 64 KiB; bad_format: a syntax error, with file:line
inline result<layer> parse_file(std::string_view text, const std::string& path) {
  constexpr std::size_t most_bytes = 65536;
  const bool is_toml = path.ends_with(".toml");
  if (!is_toml && !path.ends_with(".json"))
    return fail(errc::invalid_argument, "a configuration file ends in .toml or .json", path, "rename the file, or convert it");
  if (text.size() > most_bytes)
    return fail(errc::invalid_argument,
                "has " + std::to_string(text.size()) + " bytes, a configuration has at most " + std::to_string(most_bytes), path,
                "give a configuration file");
  return is_toml ? detail::parse_toml(text, path) : detail::parse_json_layer(text, path);
}

/// Reads a file as a layer. @error as parse_file and io::read_file
inline result<layer> read_layer(const std::string& path) {
  if (auto known = parse_file("", path.ends_with(".json") ? ".toml" : path); !known) return known;  // the extension, before the disk
  auto file = io::read_file(path);
  if (!file) return std::move(file).error();
  return parse_file(file->text(), path);
}

}  // namespace isotope::config
