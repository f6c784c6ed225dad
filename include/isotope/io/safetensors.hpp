#pragma once
/// The safetensors file format: u64 little-endian header length, JSON header, tensor bytes. The header maps each name to
/// {"dtype", "shape", "data_offsets": [begin, end)} relative to the first byte after it; "__metadata__" maps text to text.
/// A file is accepted only if every byte after the header belongs to exactly one tensor.
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
#include <isotope/core/precision.hpp>
#include <isotope/io/file.hpp>
#include <isotope/io/json.hpp>
#include <isotope/io/json_text.hpp>

namespace isotope::io {

static_assert(std::endian::native == std::endian::little, "safetensors and token files are little-endian, and are read without swapping");

/// A number format by the name that safetensors gives it.
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
inline constexpr element_type f32_elements = {"F32", 4};

/// A named tensor; the bytes belong to someone else: the file read, or the caller who writes.
struct stored_tensor {
  std::string name;
  element_type type;
  std::vector<std::int64_t> dims;
  std::span<const std::byte> bytes;

  std::int64_t elems() const { return static_cast<std::int64_t>(bytes.size()) / type.bytes; }
};

using text_pairs = std::vector<std::pair<std::string, std::string>>;

/// A file in memory. Moving it keeps the tensors' bytes in place.
struct safetensors {
  file_bytes file;
  std::vector<stored_tensor> tensors;  // by position in the file
  text_pairs metadata;

  const stored_tensor* find(std::string_view name) const {
    for (const auto& t : tensors)
      if (t.name == name) return &t;
    return nullptr;
  }
  const std::string* note(std::string_view key) const {
    for (const auto& [name, value] : metadata)
      if (name == key) return &value;
    return nullptr;
  }
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

/// One header entry. `data` is everything after the header; its begin offset comes back with the tensor.
inline result<std::pair<std::uint64_t, stored_tensor>> read_entry(const json_member& m, std::span<const std::byte> data,
                                                                  std::string_view where) {
  const std::string in = std::string(where) + ": tensor '" + m.key + "'";
  const auto refuse = [&](std::string what) {
    return fail(errc::bad_format, std::move(what), in, "write the file again with a safetensors library");
  };
  const json *dtype = m.value.find("dtype"), *shape = m.value.find("shape"), *offsets = m.value.find("data_offsets");
  if (dtype == nullptr || shape == nullptr || offsets == nullptr || m.value.members.size() != 3)
    return refuse("needs exactly dtype, shape and data_offsets");
  const auto known = std::find_if(element_types.begin(), element_types.end(), [&](const element_type& t) { return t.name == dtype->text; });
  if (dtype->is != json::kind::string || known == element_types.end()) return refuse("unknown dtype '" + dtype->text + "'");
  stored_tensor t{m.key, *known, {}, {}};
  if (shape->is != json::kind::array) return refuse("shape is not an array");
  for (const json& d : shape->items) {
    std::uint64_t dim = 0;
    if (!to_unsigned(d, dim) || dim > std::uint64_t(std::numeric_limits<std::int64_t>::max()))
      return refuse("'" + d.text + "' is not a dimension");
    t.dims.push_back(static_cast<std::int64_t>(dim));
  }
  std::uint64_t begin = 0, end = 0, bytes = 0;
  if (offsets->items.size() != 2 || !to_unsigned(offsets->items[0], begin) || !to_unsigned(offsets->items[1], end) || begin > end)
    return refuse("data_offsets is not [begin, end]");
  if (!bytes_of(t.dims, t.type.bytes, bytes)) return refuse("the shape overflows 63 bits");
  if (bytes != end - begin)
    return refuse("shape and dtype need " + std::to_string(bytes) + " bytes, data_offsets give " + std::to_string(end - begin));
  if (end > data.size())
    return fail(errc::truncated, "ends at data byte " + std::to_string(end) + ", the file has " + std::to_string(data.size()), in,
                "fetch the file again");
  t.bytes = data.subspan(begin, bytes);
  return std::pair(begin, std::move(t));
}

}  // namespace detail

/// Reads a file image. `where` names it in failures.
///
/// @error truncated with the sizes; bad_format: header, dtype, shape, offsets, a hole or an overlap, with the tensor's name
inline result<safetensors> parse_safetensors(file_bytes file, const std::string& where) {
  const auto all = file.view();
  std::uint64_t length = 0;
  if (all.size() < 8)
    return fail(errc::truncated, "has " + std::to_string(all.size()) + " bytes; a safetensors file has at least 10", where,
                "copy or download the file again");
  std::memcpy(&length, all.data(), 8);
  if (length > detail::largest_header)
    return fail(errc::bad_format, "says its header has " + std::to_string(length) + " bytes, more than 100 MB: not a safetensors file",
                where, "give a file in the safetensors format");
  if (length > all.size() - 8)
    return fail(errc::truncated,
                "says its header has " + std::to_string(length) + " bytes, only " + std::to_string(all.size() - 8) + " follow", where,
                "copy or download the file again");
  const std::string_view header = file.text().substr(8, length);
  if (header.empty() || header[0] != '{')
    return fail(errc::bad_format, "the header does not begin with '{': not a safetensors file", where,
                "give a file in the safetensors format");
  safetensors out;
  const auto data = all.subspan(8 + length);
  std::vector<std::pair<std::uint64_t, stored_tensor>> placed;
  auto read = parse_json_members(header, where, [&](json_member m) -> result<void> {
    if (m.key != "__metadata__") {
      auto entry = detail::read_entry(m, data, where);
      if (!entry) return std::move(entry).error();
      placed.push_back(*std::move(entry));
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

  const auto end_of = [](const auto& p) { return p.first + p.second.bytes.size(); };
  std::sort(placed.begin(), placed.end(),
            [&](const auto& a, const auto& b) { return std::pair(a.first, end_of(a)) < std::pair(b.first, end_of(b)); });
  std::uint64_t covered = 0;
  for (auto& [begin, tensor] : placed) {
    if (begin != covered)
      return fail(errc::bad_format,
                  "begins at data byte " + std::to_string(begin) + " where " + std::to_string(covered) +
                      " was expected: " + (begin > covered ? "a hole" : "an overlap"),
                  where + ": tensor '" + tensor.name + "'", "write the tensors without holes and overlaps");
    covered += tensor.bytes.size();
    out.tensors.push_back(std::move(tensor));
  }
  if (covered != data.size())
    return fail(errc::bad_format, std::to_string(data.size() - covered) + " bytes after the last tensor belong to none", where,
                "copy or download the file again, or name these bytes as a tensor");
  out.file = std::move(file);
  return out;
}

/// Reads a file. @error as read_file and parse_safetensors
inline result<safetensors> read_safetensors(const std::string& path) {
  auto file = read_file(path);
  if (!file) return std::move(file).error();
  return parse_safetensors(*std::move(file), path);
}

/// The bytes before the tensors: length and header, padded so that the data begins at a multiple of 8. Data follows in the order given.
///
/// @error invalid_argument: a name twice or reserved, an unknown type, dims that do not match the bytes
inline result<std::string> safetensors_header(std::span<const stored_tensor> tensors, const text_pairs& metadata) {
  std::string out(8, '\0');
  out += "{\"__metadata__\":{";
  for (const auto& [key, value] : metadata) out += json_string(key) + ":" + json_string(value) + ",";
  if (!metadata.empty()) out.pop_back();
  out += '}';
  std::vector<std::string_view> names;
  std::uint64_t begin = 0;
  for (const stored_tensor& t : tensors) {
    std::uint64_t bytes = 0;
    if (!detail::bytes_of(t.dims, t.type.bytes, bytes) || bytes != t.bytes.size())
      return fail(errc::invalid_argument,
                  "its dimensions need " + std::to_string(bytes) + " bytes, it has " + std::to_string(t.bytes.size()),
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

/// Writes a file, whole or not at all. Tensors are stored by falling element size, so that each is aligned; otherwise in the order given.
///
/// @error as safetensors_header and write_file
inline result<void> write_safetensors(const std::string& path, std::span<const stored_tensor> tensors, const text_pairs& metadata,
                                      const file_calls& calls = {}) {
  std::vector<stored_tensor> ordered;
  for (const std::int64_t size : {8, 4, 2, 1})
    for (const auto& t : tensors)
      if (t.type.bytes == size) ordered.push_back(t);
  if (ordered.size() != tensors.size())
    return fail(errc::invalid_argument, "a tensor has no element type", path, "give each tensor a type");
  auto header = safetensors_header(ordered, metadata);
  if (!header) return std::move(header).error();
  std::vector<std::span<const std::byte>> parts = {std::as_bytes(std::span(*header))};
  for (const auto& t : ordered) parts.push_back(t.bytes);
  return write_file(path, parts, calls);
}

/// out[i] = t[i] as f32. Exact from F32, F16 and BF16; F64 rounds to nearest.
///
/// @error invalid_argument: another type, or another number of elements
inline result<void> copy_f32(const stored_tensor& t, std::span<float> out) {
  if (t.elems() != static_cast<std::int64_t>(out.size()))
    return fail(errc::invalid_argument, "has " + std::to_string(t.elems()) + " elements, " + std::to_string(out.size()) + " are asked for",
                "tensor '" + t.name + "'", "give a span of the tensor's size");
  const auto convert = [&]<class T>(T element) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      std::memcpy(&element, t.bytes.data() + i * sizeof(T), sizeof(T));  // any alignment
      out[i] = static_cast<float>(element);
    }
  };
  if (t.type.name == "F32") {
    if (!out.empty()) std::memcpy(out.data(), t.bytes.data(), t.bytes.size());
  } else if (t.type.name == "F16") {
    convert(float16());
  } else if (t.type.name == "BF16") {
    convert(bfloat16());
  } else if (t.type.name == "F64") {
    convert(double());
  } else {
    return fail(errc::invalid_argument, "is " + std::string(t.type.name) + ", not a floating-point type of 16 bits or more",
                "tensor '" + t.name + "'", "read it by its own type, or convert the file");
  }
  return {};
}

}  // namespace isotope::io
