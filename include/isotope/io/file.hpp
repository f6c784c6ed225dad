#pragma once
/// Reads and writes whole files. A file is replaced completely or not at all, whenever the process or the disk fails.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <isotope/core/error.hpp>
#include <isotope/io/descriptor.hpp>
#include <isotope/io/file_writer.hpp>

namespace isotope::io {

/// The bytes of a file, aligned for every number format.
class file_bytes {
 public:
  file_bytes() = default;
  file_bytes(std::unique_ptr<std::byte[]> bytes, std::size_t size) : bytes_(std::move(bytes)), size_(size) {}

  std::size_t size() const { return size_; }
  std::byte* data() { return bytes_.get(); }
  std::span<const std::byte> view() const { return {bytes_.get(), size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes_.get()), size_}; }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t size_ = 0;
};

namespace detail {

inline bool is_there(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0;
}

inline bool is_folder(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

/// A file open for reading, and what the system says of it.
struct open_file {
  descriptor file;
  struct stat status{};
  bool regular() const { return S_ISREG(status.st_mode); }
};

/// Opens a file or a pipe. @error not_found, unreadable: a folder, no permission, a device
inline result<open_file> open_to_read(const std::string& path) {
  open_file f{descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC))};
  if (f.file.get() < 0) {
    const int error = errno;
    if (error == ENOENT || error == ENOTDIR) return fail(errc::not_found, "no such file", path, "check the path");
    return fail(errc::unreadable, "cannot open: " + reason(error), path, "check the permissions");
  }
  if (::fstat(f.file.get(), &f.status) != 0)
    return fail(errc::unreadable, "cannot stat: " + reason(errno), path, "check the path and its permissions");
  if (S_ISDIR(f.status.st_mode)) return fail(errc::unreadable, "is a folder", path, "name a file in it");
  if (!f.regular() && !S_ISFIFO(f.status.st_mode)) return fail(errc::unreadable, "is not a file or a pipe", path, "name a file");
  return f;
}

/// Reads the rest of an open file. @error unreadable: an I/O error; out_of_memory
inline result<file_bytes> read_rest(const open_file& f, const std::string& path) {
  // One byte more than expected distinguishes the end from a file that has grown.
  std::size_t capacity = f.regular() ? static_cast<std::size_t>(f.status.st_size) + 1 : 65536, size = 0;
  std::unique_ptr<std::byte[]> bytes(new (std::nothrow) std::byte[capacity]);
  while (bytes != nullptr) {
    if (size == capacity) {
      std::unique_ptr<std::byte[]> larger(new (std::nothrow) std::byte[2 * capacity]);
      if (larger != nullptr) std::memcpy(larger.get(), bytes.get(), size);
      bytes = std::move(larger);
      capacity *= 2;
      continue;
    }
    const ssize_t got = ::read(f.file.get(), bytes.get() + size, capacity - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return fail(errc::unreadable, "read failed after " + std::to_string(size) + " bytes: " + reason(errno), path,
                  "check the disk, and that nothing shortens the file");
    if (got == 0) return file_bytes(std::move(bytes), size);
    size += static_cast<std::size_t>(got);
  }
  return fail(errc::out_of_memory, "no memory for the file's " + std::to_string(capacity) + " bytes", path,
              "free memory, or take a smaller file");
}

}  // namespace detail

/// Reads all bytes of a file or pipe.
///
/// @error not_found, unreadable (a folder, no permission, a device, an I/O error), out_of_memory; each with the path
inline result<file_bytes> read_file(const std::string& path) {
  const auto file = detail::open_to_read(path);
  if (!file) return file.error();
  return detail::read_rest(*file, path);
}

/// Makes `path` hold the concatenation of `parts`, as file_writer does. @error write_failed; the temporary is removed
inline result<void> write_file(const std::string& path, std::span<const std::span<const std::byte>> parts, const file_calls& calls = {}) {
  std::size_t size = 0;
  for (auto part : parts) size += part.size();
  auto file = file_writer::open(path, size, calls);
  if (!file) return std::move(file).error();
  for (auto part : parts)
    if (auto r = file->write(part); !r) return r;
  return file->commit();
}

/// The same for one piece of text.
inline result<void> write_file(const std::string& path, std::string_view text, const file_calls& calls = {}) {
  const std::span<const std::byte> part = std::as_bytes(std::span(text.data(), text.size()));
  return write_file(path, std::span(&part, 1), calls);
}

}  // namespace isotope::io
