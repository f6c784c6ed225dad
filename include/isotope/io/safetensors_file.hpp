#pragma once
/// A safetensors file whose tensors are read on demand, one by one. Memory holds only the header.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <isotope/core/error.hpp>
#include <isotope/io/byte_source.hpp>
#include <isotope/io/safetensors.hpp>

namespace isotope::io {

namespace detail {

/// How much a reader hashes or converts at a time: it fits a processor's cache, and the system call costs little beside the copy.
inline constexpr std::size_t piece_bytes = 256 << 10;

}  // namespace detail

struct safetensors_file : safetensors_index {
  byte_source source;

  /// Reads the bytes of a tensor. @error invalid_argument: another number of bytes; as byte_source::read, with the tensor's name
  result<void> read(const tensor_entry& t, std::span<std::byte> out) const {
    if (t.bytes != out.size())
      return fail(errc::invalid_argument, "has " + std::to_string(t.bytes) + " bytes, " + std::to_string(out.size()) + " are asked for",
                  "tensor '" + t.name + "'", "give a span of the tensor's size");
    return named(t, source.read(data_at + t.begin, out));
  }

  /// out[i] = t[i] as f32, converted like copy_f32; seen(bytes) receives all its bytes in order, in pieces.
  ///
  /// @error invalid_argument: a type that copy_f32 refuses, or another number of elements; as byte_source::read, with the tensor's name
  template <class Seen> result<void> read_f32(const tensor_entry& t, std::span<float> out, const Seen& seen) const {
    if (auto r = detail::reads_as_f32(t.name, t.type, t.elems(), out.size()); !r) return r;
    const bool direct = t.type == f32_elements;
    std::vector<std::byte> piece(direct ? 0 : std::min<std::size_t>(detail::piece_bytes, t.bytes));
    for (std::size_t done = 0, n = 0; done < t.bytes; done += n) {
      n = std::min<std::size_t>(detail::piece_bytes, t.bytes - done);
      const auto elem = static_cast<std::size_t>(t.type.bytes);
      const auto to = out.subspan(done / elem, n / elem);
      const auto bytes = direct ? std::as_writable_bytes(to) : std::span(piece).first(n);
      if (auto r = named(t, source.read(data_at + t.begin + done, bytes)); !r) return r;
      seen(std::span<const std::byte>(bytes));
      if (!direct) detail::to_f32(t.type, bytes, to);
    }
    return {};
  }
  result<void> read_f32(const tensor_entry& t, std::span<float> out) const {
    return read_f32(t, out, [](std::span<const std::byte>) {});
  }
  /// out[i] = t[first + i] as f32. @error as for the whole tensor; invalid_argument: elements past its end
  result<void> read_f32(const tensor_entry& t, std::int64_t first, std::span<float> out) const {
    if (auto r = detail::reads_as_f32(t.name, t.type, t.elems(), static_cast<std::size_t>(t.elems())); !r) return r;
    const auto elem = static_cast<std::size_t>(t.type.bytes), size = out.size();
    if (first < 0 || first > t.elems() || static_cast<std::int64_t>(size) > t.elems() - first)
      return fail(errc::invalid_argument,
                  "has " + std::to_string(t.elems()) + " elements, " + std::to_string(size) + " from element " + std::to_string(first) +
                      " on are asked for",
                  "tensor '" + t.name + "'", "ask for elements of the tensor");
    const std::uint64_t at = data_at + t.begin + static_cast<std::uint64_t>(first) * elem;
    if (t.type == f32_elements) return named(t, source.read(at, std::as_writable_bytes(out)));
    std::vector<std::byte> piece(std::min<std::size_t>(detail::piece_bytes, size * elem));
    for (std::size_t done = 0, n = 0; done < size; done += n) {
      n = std::min(piece.size() / elem, size - done);
      const auto bytes = std::span(piece).first(n * elem);
      if (auto r = named(t, source.read(at + done * elem, bytes)); !r) return r;
      detail::to_f32(t.type, bytes, out.subspan(done, n));
    }
    return {};
  }

 private:
  static result<void> named(const tensor_entry& t, result<void> r) {
    if (r) return r;
    failure f = std::move(r).error();
    f.where += ": tensor '" + t.name + "'";
    return f;
  }
};

namespace detail {

/// Reads the header of a file. @error as read_safetensors
inline result<safetensors_index> index_of(const byte_source& source) {
  std::array<std::byte, 8> first{};
  if (source.size() >= first.size())
    if (auto r = source.read(0, first); !r) return std::move(r).error();
  const auto length = header_length(first, source.size(), source.where());
  if (!length) return length.error();
  std::string header(*length, '\0');
  if (auto r = source.read(first.size(), std::as_writable_bytes(std::span(header))); !r) return std::move(r).error();
  return read_header(header, source.size() - first.size() - *length, source.where());
}

}  // namespace detail

/// Opens a file and reads its header. @error as read_safetensors
inline result<safetensors_file> open_safetensors(const std::string& path) {
  auto source = byte_source::open(path);
  if (!source) return std::move(source).error();
  auto index = detail::index_of(*source);
  if (!index) return std::move(index).error();
  safetensors_file file;
  static_cast<safetensors_index&>(file) = *std::move(index);
  file.source = *std::move(source);
  return file;
}

}  // namespace isotope::io
