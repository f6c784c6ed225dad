#pragma once
/// The file layer: a partial configuration in TOML or JSON, flattened to keys such as `model.width`.
#include <cstddef>
#include <string>
#include <string_view>

#include <isotope/config/entry.hpp>
#include <isotope/config/toml.hpp>
#include <isotope/core/error.hpp>
#include <isotope/io/file.hpp>
#include <isotope/io/json.hpp>

namespace isotope::config {

namespace detail {

inline void flatten(const io::json& object, const std::string& prefix, const std::string& path, layer& out) {
  for (const io::json_member& m : object.members) {
    using kind = io::json::kind;
    if (m.value.is == kind::object) {
      flatten(m.value, prefix + m.key + ".", path, out);
      continue;
    }
    entry e{prefix + m.key, m.value.text, written_as::other, path + ":" + std::to_string(m.value.line)};
    if (m.value.is == kind::string) e.form = written_as::string;
    else if (m.value.is == kind::number) e.form = written_as::number;
    else if (m.value.is == kind::boolean) e.form = written_as::boolean, e.value = m.value.boolean ? "true" : "false";
    else e.value = m.value.is == kind::null ? "null" : "an array";
    out.push_back(std::move(e));
  }
}

}  // namespace detail

/// Flattens a JSON object. @error bad_format with path:line
inline result<layer> parse_json(std::string_view text, const std::string& path) {
  auto root = io::parse_json(text, path);
  if (!root) return std::move(root).error();
  if (root->is != io::json::kind::object)
    return fail(errc::bad_format, std::string(name_of(root->is)) + " is not a configuration", path, "write an object");
  layer out;
  detail::flatten(*root, {}, path, out);
  return out;
}

/// Reads a file's text as a layer; the extension of `path` selects the format.
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
  return is_toml ? parse_toml(text, path) : parse_json(text, path);
}

/// Reads a file as a layer. @error as parse_file and io::read_file
inline result<layer> read_layer(const std::string& path) {
  if (auto known = parse_file(path.ends_with(".json") ? "{}" : "", path); !known)
    return known;  // checks the extension before reading the disk
  auto file = io::read_file(path);
  if (!file) return std::move(file).error();
  return parse_file(file->text(), path);
}

}  // namespace isotope::config
