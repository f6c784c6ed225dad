#pragma once
/// A lock between processes, on a file that names its holder.
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <string>
#include <utility>

#include <isotope/core/error.hpp>
#include <isotope/io/file.hpp>

namespace isotope::io {

/// Holds the lock until it is destroyed or the process ends. The file remains: if it were removed, two processes could hold two files of one name.
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

  /// @error in_use: it is held, and the text names the process; write_failed: the file cannot be made. On a file system without locks, everybody
  ///        gets the lock
  static result<file_lock> take(const std::string& path) {
    file_lock lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (lock.file_ < 0)
      return fail(errc::write_failed, "cannot make the lock: " + detail::reason(errno), path, "check the folder and its permissions");
    if (::flock(lock.file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      return fail(errc::in_use, "process " + lock.holder() + " writes there", path, "let it end");
    // The new name overwrites the previous one, so that the file always has one.
    const std::string text = std::to_string(::getpid()) + "\n";
    if (::pwrite(lock.file_, text.data(), text.size(), 0) != ssize_t(text.size()) || ::ftruncate(lock.file_, off_t(text.size())) != 0) {
      // The lock is valid without a name: a full disk must not stop a run from resuming, which may free some of it.
    }
    return lock;
  }

 private:
  explicit file_lock(int file) : file_(file) {}

  /// Returns the process that the file names. A process that has just taken the lock may not have written yet, so a missing name or that of an ended
  /// process is read again for a while. It stays unresolved if the holder runs on another machine.
  std::string holder() const {
    long process = 0;
    for (int turn = 0; turn < 50; ++turn) {
      char text[24];
      const ssize_t size = ::pread(file_, text, sizeof text, 0);
      if (size <= 0 || std::from_chars(text, text + size, process).ec != std::errc()) process = 0;
      if (process > 0 && (::kill(pid_t(process), 0) == 0 || errno == EPERM)) break;
      ::usleep(1000);
    }
    return process > 0 ? std::to_string(process) : "(unknown)";
  }

  int file_;
};

}  // namespace isotope::io
