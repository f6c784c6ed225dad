#pragma once
/// The bytes of a file by position, so that a large one is read in pieces and never held whole.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include <isotope/core/error.hpp>
#include <isotope/io/file.hpp>

namespace isotope::io {

namespace detail {

/// Counts from any thread; it moves with what it counts.
class moving_count {
 public:
  moving_count() = default;
  moving_count(moving_count&& o) noexcept : n_(o.get()) {}
  moving_count& operator=(moving_count&& o) noexcept { return n_.store(o.get(), std::memory_order_relaxed), *this; }
  void add(std::uint64_t n) { n_.fetch_add(n, std::memory_order_relaxed); }
  std::uint64_t get() const { return n_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> n_{0};
};

}  // namespace detail

/// Keeps a regular file open and reads it on demand: replacing or removing the file has no effect here. The file is not mapped, because shortening a
/// mapped file ends the process. A pipe is read to its end and held in memory.
class byte_source {
 public:
  byte_source() = default;
  /// Bytes that are already in memory. `where` names them in failures.
  byte_source(file_bytes held, std::string where) : where_(std::move(where)), size_(held.size()), held_(std::move(held)) {}

  /// @error as read_file
  static result<byte_source> open(const std::string& path) {
    auto file = detail::open_to_read(path);
    if (!file) return std::move(file).error();
    if (!file->regular()) {
      auto rest = detail::read_rest(*file, path);
      if (!rest) return std::move(rest).error();
      return byte_source(*std::move(rest), path);
    }
    byte_source s;
    s.where_ = path;
    s.size_ = static_cast<std::uint64_t>(file->status.st_size);
    s.file_ = std::move(file->file);
    return s;
  }

  std::uint64_t size() const { return size_; }
  const std::string& where() const { return where_; }
  /// How many bytes were asked for so far.
  std::uint64_t bytes_read() const { return read_.get(); }

  /// Fills `out` with the bytes from `at` on. @error unreadable: an I/O error, or the file ends too early
  result<void> read(std::uint64_t at, std::span<std::byte> out) const {
    read_.add(out.size());
    if (file_.get() < 0) {
      if (at > size_ || out.size() > size_ - at) return ends(size_);
      std::copy_n(held_.view().data() + at, out.size(), out.data());
      return {};
    }
    while (!out.empty()) {
      const ssize_t got = ::pread(file_.get(), out.data(), out.size(), static_cast<off_t>(at));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0)
        return fail(errc::unreadable, "read failed after " + std::to_string(at) + " bytes: " + detail::reason(errno), where_,
                    "check the disk, and that nothing shortens the file");
      if (got == 0) return ends(at);
      at += static_cast<std::uint64_t>(got);
      out = out.subspan(static_cast<std::size_t>(got));
    }
    return {};
  }

 private:
  std::string where_;
  std::uint64_t size_ = 0;
  file_bytes held_;
  detail::descriptor file_{-1};
  mutable detail::moving_count read_;

  failure ends(std::uint64_t at) const {
    return fail(errc::unreadable, "ends after " + std::to_string(at) + " bytes, it had " + std::to_string(size_), where_,
                "let nothing shorten the file while it is read");
  }
};

}  // namespace isotope::io
