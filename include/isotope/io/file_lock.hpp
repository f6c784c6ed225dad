#pragma once
/// A lock between processes, on a file that names its holder.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <string>
#include <utility>

#include <isotope/core/error.hpp>
#include <isotope/io/file.hpp>

namespace isotope::io {

/// Held until it is destroyed or the process ends. The file stays: removing it would let two processes hold two files of one name.
class file_lock {
 public:
  file_lock(file_lock&& from) noexcept : file_(std::exchange(from.file_, -1)) {}
  file_lock& operator=(file_lock&& from) noexcept {
    std::swap(file_, from.file_);
    return *this;
  }
  ~file_lock() {
    if (file_ >= 0) ::close(file_);
  }

  /// @error in_use: it is held, the text says by which process; write_failed: the file cannot be made. Where the file system has no locks, it is
  ///        given to everybody
  static result<file_lock> take(const std::string& path) {
    file_lock lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (lock.file_ < 0)
      return fail(errc::write_failed, "cannot make the lock: " + detail::reason(errno), path, "check the folder and its permissions");
    if (::flock(lock.file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      return fail(errc::in_use, "process " + lock.holder() + " writes there", path, "let it end");
    const std::string text = std::to_string(::getpid()) + "\n";
    if (::ftruncate(lock.file_, 0) != 0 || ::pwrite(lock.file_, text.data(), text.size(), 0) != ssize_t(text.size())) {
      // The lock holds without a name: a full disk must not stop a run from resuming, which may free some of it.
    }
    return lock;
  }

 private:
  explicit file_lock(int file) : file_(file) {}

  std::string holder() const {
    char text[24];
    const ssize_t size = ::pread(file_, text, sizeof text, 0);
    long process = 0;
    return size > 0 && std::from_chars(text, text + size, process).ec == std::errc() ? std::to_string(process) : "(unknown)";
  }

  int file_;
};

}  // namespace isotope::io
