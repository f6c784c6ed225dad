#pragma once
/// Safetensors files held in memory as a whole.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <isotope/core/error.hpp>
#include <isotope/core/precision.hpp>
#include <isotope/io/file.hpp>
#include <isotope/io/safetensors_index.hpp>

namespace isotope::io {

/// A named tensor. The file that was read, or the caller who writes, owns the bytes.
struct stored_tensor {
  std::string name;
  element_type type;
  std::vector<std::int64_t> dims;
  std::span<const std::byte> bytes;

  std::int64_t elems() const { return static_cast<std::int64_t>(bytes.size()) / type.bytes; }
};

/// A file in memory. Moving it keeps the tensors' bytes in place.
struct safetensors {
  file_bytes file;
  std::vector<stored_tensor> tensors;  // in the order of the file
  text_pairs metadata;

  const stored_tensor* find(std::string_view name) const {
    for (const auto& t : tensors)
      if (t.name == name) return &t;
    return nullptr;
  }
  const std::string* note(std::string_view key) const { return find_note(metadata, key); }
};

/// Reads a file image. `where` names it in failures.
///
/// @error truncated with the sizes; bad_format: header, dtype, shape, offsets, a hole or an overlap, with the tensor's name
inline result<safetensors> parse_safetensors(file_bytes file, const std::string& where) {
  const auto all = file.view();
  const auto length = detail::header_length(all, all.size(), where);
  if (!length) return length.error();
  auto index = detail::read_header(file.text().substr(8, *length), all.size() - 8 - *length, where);
  if (!index) return std::move(index).error();
  safetensors out;
  out.metadata = std::move(index->metadata);
  for (tensor_entry& t : index->tensors)
    out.tensors.push_back({std::move(t.name), t.type, std::move(t.dims), all.subspan(index->data_at + t.begin, t.bytes)});
  out.file = std::move(file);
  return out;
}

/// Reads a file. @error as read_file and parse_safetensors
inline result<safetensors> read_safetensors(const std::string& path) {
  auto file = read_file(path);
  if (!file) return std::move(file).error();
  return parse_safetensors(*std::move(file), path);
}

/// Returns the header of these tensors, as safetensors_header does for entries. @error invalid_argument: a name twice or reserved, an unknown type,
/// dims that do not match the bytes
inline result<std::string> safetensors_header(std::span<const stored_tensor> tensors, const text_pairs& metadata) {
  std::vector<tensor_entry> entries;
  for (const stored_tensor& t : tensors) entries.push_back({t.name, t.type, t.dims, 0, t.bytes.size()});
  return safetensors_header(entries, metadata);
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

namespace detail {

/// out[i] = element i as f32; the bytes may be at any address. Returns false and does nothing unless the type is floating-point of 16 bits or more;
/// empty bytes only test the type.
inline bool to_f32(const element_type& type, std::span<const std::byte> bytes, std::span<float> out) {
  const auto convert = [&]<class T>(T element) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      std::memcpy(&element, bytes.data() + i * sizeof(T), sizeof(T));
      out[i] = static_cast<float>(element);
    }
    return true;
  };
  if (type.name == "F16") return convert(float16());
  if (type.name == "BF16") return convert(bfloat16());
  if (type.name == "F64") return convert(double());
  if (type.name != "F32") return false;
  if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  return true;
}

/// Checks that a tensor can be read as so many f32 numbers. @error as copy_f32
inline result<void> reads_as_f32(const std::string& name, const element_type& type, std::int64_t elems, std::size_t wanted) {
  if (elems != static_cast<std::int64_t>(wanted))
    return fail(errc::invalid_argument, "has " + std::to_string(elems) + " elements, " + std::to_string(wanted) + " are asked for",
                "tensor '" + name + "'", "give a span of the tensor's size");
  if (to_f32(type, {}, {})) return {};
  return fail(errc::invalid_argument, "is " + std::string(type.name) + ", not a floating-point type of 16 bits or more",
              "tensor '" + name + "'", "read it by its own type, or convert the file");
}

}  // namespace detail

/// out[i] = t[i] as f32. Exact from F32, F16 and BF16; F64 rounds to nearest.
///
/// @error invalid_argument: another type, or another number of elements
inline result<void> copy_f32(const stored_tensor& t, std::span<float> out) {
  if (auto r = detail::reads_as_f32(t.name, t.type, t.elems(), out.size()); !r) return r;
  detail::to_f32(t.type, t.bytes, out);
  return {};
}

}  // namespace isotope::io
