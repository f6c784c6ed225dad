#pragma once
/// A file that is written piece by piece and replaced completely or not at all, whenever the process or the disk fails.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <isotope/core/error.hpp>
#include <isotope/io/descriptor.hpp>

namespace isotope::io {

/// The system calls of a replacement. Tests derive from it to make any of them fail, fall short or stop.
struct file_calls {
  virtual ~file_calls() = default;
  virtual ssize_t write(int file, const void* bytes, std::size_t size) const { return ::write(file, bytes, size); }
  virtual ssize_t write_at(int file, const void* bytes, std::size_t size, off_t at) const { return ::pwrite(file, bytes, size, at); }
  virtual int sync(int file) const { return ::fsync(file); }
  virtual int rename(const char* from, const char* to) const { return ::rename(from, to); }
  virtual int stat(const char* path, struct stat* status) const { return ::stat(path, status); }
};

/// Separates a file's name from a number in the name of the temporary.
inline constexpr std::string_view temporary_mark = ".writing-";

namespace detail {

inline std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

/// Creates a new file `<path>.writing-<process>-<n>`; n skips what killed writers left. Returns -1 with errno.
inline int create_beside(const std::string& path, std::string& name) {
  const std::string stem = path + std::string(temporary_mark) + std::to_string(::getpid()) + "-";
  int file = -1;
  for (int n = 0; n < 1000 && file < 0; ++n) {
    name = stem + std::to_string(n);
    file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0 && errno != EEXIST) break;
  }
  return file;
}

/// What a path refers to.
struct name_target {
  std::string path;    // end of a chain of symbolic links, whether it exists or not
  bool named = false;  // a name of the system for an open file, such as /dev/stdout
  int file = -1;       // that open file, if it belongs to this process
};
inline name_target target_of(std::string path) {
  const std::string own = "/proc/" + std::to_string(::getpid()) + "/fd/";
  for (int links = 0; links < 40; ++links) {
    const std::unique_ptr<char, void (*)(void*)> folder(::realpath(folder_of(path).c_str(), nullptr), std::free);
    if (folder != nullptr) path = (std::string_view(folder.get()) == "/" ? "" : folder.get()) + ("/" + path.substr(path.rfind('/') + 1));
    if (path.starts_with("/proc/")) {
      int file = -1;
      if (path.starts_with(own)) std::from_chars(path.data() + own.size(), path.data() + path.size(), file);
      return {std::move(path), true, file};
    }
    std::string to(4096, '\0');
    const ssize_t size = ::readlink(path.c_str(), to.data(), to.size());
    if (size < 0) break;
    to.resize(std::size_t(size));
    path = to.starts_with('/') ? to : folder_of(path) + "/" + to;
  }
  return {std::move(path)};
}

/// @param kept  whether the previous contents are still there
inline failure write_failure(const std::string& path, const char* call, int error, std::size_t done, std::size_t size, bool kept = true) {
  std::string what = std::string("cannot write ") + std::to_string(size) + " bytes: " + call + " failed after " + std::to_string(done) +
                     " bytes: " + reason(error) + (kept ? "; the previous file, if any, is unchanged" : "");
  const char* fix = error == EFBIG                       ? "raise the limit on file sizes (ulimit -f)"
                    : error == EISDIR                    ? "name a file in it"
                    : error == ENOSPC || error == EDQUOT ? "free disk space, or write to another disk"
                                                         : "check the folder and its permissions";
  return fail(errc::write_failed, std::move(what), path, fix);
}

}  // namespace detail

/// Replaces a regular file: it writes a temporary in the same folder, syncs and renames it, then syncs the folder, so that the path always names the
/// old or the new file as a whole. After a failure, and if the writer is destroyed before its commit, it is the old one. A symbolic link remains, and
/// its target is replaced. A pipe or a device is written to and remains; so is an open file of this process that a system name refers to, such as
/// /dev/stdout, from its current position on.
///
/// Every member fails with write_failed: the call, the bytes written and the system's reason.
class file_writer {
 public:
  /// @param bytes  how many will be written, for failures
  /// @param calls  must outlive the writer
  static result<file_writer> open(const std::string& path, std::size_t bytes, const file_calls& calls) {
    file_writer w(path, bytes, calls);
    struct stat old{};
    const bool there = calls.stat(path.c_str(), &old) == 0;
    auto [target, named, open_file] = detail::target_of(path);
    if (there && S_ISDIR(old.st_mode)) return detail::write_failure(path, "open", EISDIR, 0, bytes);
    if (there && (named || !S_ISREG(old.st_mode))) {
      w.file_ = detail::descriptor(open_file >= 0 ? ::fcntl(open_file, F_DUPFD_CLOEXEC, 0)
                                                  : ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
      if (w.file_.get() < 0) return detail::write_failure(path, "open", errno, 0, bytes);
      return w;
    }
    std::string temporary;
    w.file_ = detail::descriptor(detail::create_beside(target, temporary));
    if (w.file_.get() < 0) return detail::write_failure(path, "creating a temporary", errno, 0, bytes);
    w.target_ = std::move(target);
    w.temporary_ = std::move(temporary);
    if (there) w.mode_ = int(old.st_mode & 07777);
    return w;
  }
  file_writer(file_writer&& from) noexcept
      : path_(std::move(from.path_)),
        target_(std::move(from.target_)),
        temporary_(std::exchange(from.temporary_, {})),
        bytes_(from.bytes_),
        done_(from.done_),
        mode_(from.mode_),
        file_(std::move(from.file_)),
        calls_(from.calls_) {}
  file_writer& operator=(file_writer&&) = delete;
  ~file_writer() {
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
  }

  /// Whether `rewrite` is possible; a pipe or a device takes every byte once.
  bool rewrites() const { return !temporary_.empty(); }

  /// Appends bytes.
  result<void> write(std::span<const std::byte> part) {
    while (!part.empty()) {
      const ssize_t put = calls_->write(file_.get(), part.data(), part.size());
      if (put < 0 && errno == EINTR) continue;
      if (put == 0) errno = ENOSPC;
      if (put <= 0) return failed("write", errno);
      done_ += static_cast<std::size_t>(put);
      part = part.subspan(static_cast<std::size_t>(put));
    }
    return {};
  }
  /// Overwrites some bytes that were written.
  result<void> rewrite(std::size_t at, std::span<const std::byte> part) {
    while (!part.empty()) {
      const ssize_t put = calls_->write_at(file_.get(), part.data(), part.size(), static_cast<off_t>(at));
      if (put < 0 && errno == EINTR) continue;
      if (put == 0) errno = ENOSPC;
      if (put <= 0) return failed("pwrite", errno);
      at += static_cast<std::size_t>(put);
      part = part.subspan(static_cast<std::size_t>(put));
    }
    return {};
  }
  /// Commits: from here on the path names the new file.
  result<void> commit() {
    if (!rewrites()) return file_.close() == 0 ? result<void>() : failed("close", errno);
    if (mode_ >= 0 && ::fchmod(file_.get(), static_cast<mode_t>(mode_)) != 0) return failed("fchmod", errno);
    if (calls_->sync(file_.get()) != 0) return failed("fsync", errno);
    if (file_.close() != 0) return failed("close", errno);
    if (calls_->rename(temporary_.c_str(), target_.c_str()) != 0) return failed("rename", errno);
    temporary_.clear();
    // The new file is in place; only its survival of a power cut is uncertain, which some file systems cannot promise at all.
    const detail::descriptor folder(::open(detail::folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder.get() >= 0) static_cast<void>(calls_->sync(folder.get()));
    return {};
  }

 private:
  file_writer(std::string path, std::size_t bytes, const file_calls& calls)
      : path_(std::move(path)), bytes_(bytes), file_(-1), calls_(&calls) {}

  /// Returns a failure; the writer removes the temporary.
  failure failed(const char* call, int error) const { return detail::write_failure(path_, call, error, done_, bytes_, rewrites()); }

  std::string path_, target_, temporary_;  // path as given; file being replaced; file being written, empty for a pipe or a device
  std::size_t bytes_, done_ = 0;
  int mode_ = -1;  // permissions of the replaced file, if there is one
  detail::descriptor file_;
  const file_calls* calls_;
};

}  // namespace isotope::io
