#pragma once
/// The safetensors file format: u64 little-endian header length, JSON header, tensor bytes. The header maps each name to {"dtype", "shape",
/// "data_offsets": [begin, end)} relative to the first byte after it; "__metadata__" maps text to text. A file is accepted only if every byte after
/// the header belongs to exactly one tensor. This file reads and writes the header.
/// Source: huggingface/safetensors, README, "Format".
#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <isotope/core/error.hpp>
#include <isotope/io/json.hpp>
#include <isotope/io/json_text.hpp>

namespace isotope::io {

static_assert(std::endian::native == std::endian::little, "safetensors and token files are little-endian, and are read without swapping");

/// Returns a number format by its safetensors name.
struct element_type {
  std::string_view name;
  std::int64_t bytes = 0;
  friend bool operator==(const element_type&, const element_type&) = default;
};
inline constexpr std::array<element_type, 15> element_types = {{{"BOOL", 1},
                                                                {"U8", 1},
                                                                {"I8", 1},
                                                                {"F8_E5M2", 1},
                                                                {"F8_E4M3", 1},
                                                                {"I16", 2},
                                                                {"U16", 2},
                                                                {"F16", 2},
                                                                {"BF16", 2},
                                                                {"I32", 4},
                                                                {"U32", 4},
                                                                {"F32", 4},
                                                                {"F64", 8},
                                                                {"I64", 8},
                                                                {"U64", 8}}};
inline constexpr element_type f32_elements = {"F32", 4}, u8_elements = {"U8", 1};

using text_pairs = std::vector<std::pair<std::string, std::string>>;

/// Returns the text of a key, or null.
inline const std::string* find_note(const text_pairs& notes, std::string_view key) {
  for (const auto& [name, value] : notes)
    if (name == key) return &value;
  return nullptr;
}

/// "[3,2,7]"
inline std::string dims_text(std::span<const std::int64_t> dims) {
  std::string text = "[";
  for (const std::int64_t d : dims) text += (text.size() > 1 ? "," : "") + std::to_string(d);
  return text + "]";
}

/// A header's entry for a tensor.
struct tensor_entry {
  std::string name;
  element_type type;
  std::vector<std::int64_t> dims;
  std::uint64_t begin = 0, bytes = 0;  // counted from the first byte after the header

  std::int64_t elems() const { return static_cast<std::int64_t>(bytes) / type.bytes; }
};

/// The contents of a header.
struct safetensors_index {
  std::vector<tensor_entry> tensors;  // in the order of the file
  text_pairs metadata;
  std::uint64_t data_at = 0;  // bytes of the length and the header

  const tensor_entry* find(std::string_view name) const {
    for (const auto& t : tensors)
      if (t.name == name) return &t;
    return nullptr;
  }
  const std::string* note(std::string_view key) const { return find_note(metadata, key); }
};

namespace detail {

inline constexpr std::uint64_t largest_header = 100'000'000;  // the reference implementation's bound

inline bool to_unsigned(const json& number, std::uint64_t& out) {
  if (number.is != json::kind::number) return false;
  const char *first = number.text.data(), *last = first + number.text.size();
  const auto [end, error] = std::from_chars(first, last, out);
  return error == std::errc() && end == last && number.text[0] != '-';
}

/// elems = product of dims, bytes = elems * size; false on overflow.
inline bool bytes_of(std::span<const std::int64_t> dims, std::int64_t size, std::uint64_t& bytes) {
  bytes = static_cast<std::uint64_t>(size);
  for (const std::int64_t d : dims) {
    if (d < 0 || (d > 0 && bytes > std::uint64_t(std::numeric_limits<std::int64_t>::max()) / std::uint64_t(d))) return false;
    bytes *= static_cast<std::uint64_t>(d);
  }
  return true;
}

/// Reads one header entry. `data` is the number of bytes behind the header.
inline result<tensor_entry> read_entry(const json_member& m, std::uint64_t data, std::string_view where) {
  const std::string in = std::string(where) + ": tensor '" + m.key + "'";
  const auto refuse = [&](std::string what) {
    return fail(errc::bad_format, std::move(what), in, "write the file again with a safetensors library");
  };
  const json *dtype = m.value.find("dtype"), *shape = m.value.find("shape"), *offsets = m.value.find("data_offsets");
  if (dtype == nullptr || shape == nullptr || offsets == nullptr || m.value.members.size() != 3)
    return refuse("needs exactly dtype, shape and data_offsets");
  const auto known = std::find_if(element_types.begin(), element_types.end(), [&](const element_type& t) { return t.name == dtype->text; });
  if (dtype->is != json::kind::string || known == element_types.end()) return refuse("unknown dtype '" + dtype->text + "'");
  tensor_entry t{m.key, *known, {}};
  if (shape->is != json::kind::array) return refuse("shape is not an array");
  for (const json& d : shape->items) {
    std::uint64_t dim = 0;
    if (!to_unsigned(d, dim) || dim > std::uint64_t(std::numeric_limits<std::int64_t>::max()))
      return refuse("'" + d.text + "' is not a dimension");
    t.dims.push_back(static_cast<std::int64_t>(dim));
  }
  std::uint64_t end = 0;
  if (offsets->items.size() != 2 || !to_unsigned(offsets->items[0], t.begin) || !to_unsigned(offsets->items[1], end) || t.begin > end)
    return refuse("data_offsets is not [begin, end]");
  if (!bytes_of(t.dims, t.type.bytes, t.bytes)) return refuse("the shape overflows 63 bits");
  if (t.bytes != end - t.begin)
    return refuse("shape and dtype need " + std::to_string(t.bytes) + " bytes, data_offsets give " + std::to_string(end - t.begin));
  if (end > data)
    return fail(errc::truncated, "ends at data byte " + std::to_string(end) + ", the file has " + std::to_string(data), in,
                "fetch the file again");
  return t;
}

/// Returns the length of a header from the first bytes of a file of `size` bytes. @error truncated, bad_format
inline result<std::uint64_t> header_length(std::span<const std::byte> first, std::uint64_t size, const std::string& where) {
  std::uint64_t length = 0;
  if (size < 8)
    return fail(errc::truncated, "has " + std::to_string(size) + " bytes; a safetensors file has at least 10", where,
                "copy or download the file again");
  std::memcpy(&length, first.data(), 8);
  if (length > largest_header)
    return fail(errc::bad_format, "says its header has " + std::to_string(length) + " bytes, more than 100 MB: not a safetensors file",
                where, "give a file in the safetensors format");
  if (length > size - 8)
    return fail(errc::truncated, "says its header has " + std::to_string(length) + " bytes, only " + std::to_string(size - 8) + " follow",
                where, "copy or download the file again");
  return length;
}

/// Reads a header that `data` bytes follow. @error as parse_safetensors
inline result<safetensors_index> read_header(std::string_view header, std::uint64_t data, const std::string& where) {
  if (header.empty() || header[0] != '{')
    return fail(errc::bad_format, "the header does not begin with '{': not a safetensors file", where,
                "give a file in the safetensors format");
  safetensors_index out;
  out.data_at = 8 + header.size();
  auto read = parse_json_members(header, where, [&](json_member m) -> result<void> {
    if (m.key != "__metadata__") {
      auto entry = read_entry(m, data, where);
      if (!entry) return std::move(entry).error();
      out.tensors.push_back(*std::move(entry));
      return {};
    }
    if (m.value.is != json::kind::object)
      return fail(errc::bad_format, "__metadata__ is not an object", where, "write metadata as an object of strings");
    for (json_member& note : m.value.members) {
      if (note.value.is != json::kind::string)
        return fail(errc::bad_format, "metadata '" + note.key + "' is not a string", where, "write metadata as strings");
      out.metadata.emplace_back(std::move(note.key), std::move(note.value.text));
    }
    return {};
  });
  if (!read) return std::move(read).error();

  std::sort(out.tensors.begin(), out.tensors.end(), [](const tensor_entry& a, const tensor_entry& b) {
    return std::pair(a.begin, a.begin + a.bytes) < std::pair(b.begin, b.begin + b.bytes);
  });
  std::uint64_t covered = 0;
  for (const tensor_entry& t : out.tensors) {
    if (t.begin != covered)
      return fail(errc::bad_format,
                  "begins at data byte " + std::to_string(t.begin) + " where " + std::to_string(covered) +
                      " was expected: " + (t.begin > covered ? "a hole" : "an overlap"),
                  where + ": tensor '" + t.name + "'", "write the tensors without holes and overlaps");
    covered += t.bytes;
  }
  if (covered != data)
    return fail(errc::bad_format, std::to_string(data - covered) + " bytes after the last tensor belong to none", where,
                "copy or download the file again, or name these bytes as a tensor");
  return out;
}

}  // namespace detail

/// Returns the bytes before the tensors: length and header, padded so that the data begins at a multiple of 8. The data follow in the given order;
/// their offsets follow from the sizes.
///
/// @error invalid_argument: a name twice or reserved, an unknown type, dims that do not match the bytes
inline result<std::string> safetensors_header(std::span<const tensor_entry> tensors, const text_pairs& metadata) {
  std::string out(8, '\0');
  out += "{\"__metadata__\":{";
  for (const auto& [key, value] : metadata) out += json_string(key) + ":" + json_string(value) + ",";
  if (!metadata.empty()) out.pop_back();
  out += '}';
  std::vector<std::string_view> names;
  std::uint64_t begin = 0;
  for (const tensor_entry& t : tensors) {
    std::uint64_t bytes = 0;
    if (!detail::bytes_of(t.dims, t.type.bytes, bytes) || bytes != t.bytes)
      return fail(errc::invalid_argument, "its dimensions need " + std::to_string(bytes) + " bytes, it has " + std::to_string(t.bytes),
                  "tensor '" + t.name + "'", "give as many bytes as the dimensions need");
    names.push_back(t.name);
    out += "," + json_string(t.name) + ":{\"dtype\":" + json_string(t.type.name) + ",\"shape\":[";
    for (const std::int64_t d : t.dims) out += std::to_string(d) + ",";
    if (!t.dims.empty()) out.pop_back();
    out += "],\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(begin + bytes) + "]}";
    begin += bytes;
  }
  names.push_back("__metadata__");
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
    return fail(errc::invalid_argument, "two tensors have this name", "tensor '" + std::string(*twice) + "'",
                "give each tensor a name of its own");
  out += '}';
  out.append((8 - out.size() % 8) % 8, ' ');
  const std::uint64_t length = out.size() - 8;
  std::memcpy(out.data(), &length, 8);
  return out;
}

}  // namespace isotope::io
