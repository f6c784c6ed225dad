#pragma once
/// Whole files in, whole files out. A file is replaced completely or not at all, whatever moment the process or the disk gives up.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <isotope/core/error.hpp>

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

/// The system calls of a replacement. Tests derive from it to fail, shorten or stop at any of them.
struct file_calls {
  virtual ~file_calls() = default;
  virtual ssize_t write(int file, const void* bytes, std::size_t size) const { return ::write(file, bytes, size); }
  virtual int sync(int file) const { return ::fsync(file); }
  virtual int rename(const char* from, const char* to) const { return ::rename(from, to); }
  virtual int stat(const char* path, struct stat* status) const { return ::stat(path, status); }
};

/// What stands between a file's name and a number while the file is being written.
inline constexpr std::string_view temporary_mark = ".writing-";

namespace detail {

/// Owns a file descriptor; closing reports its error once.
class descriptor {
 public:
  explicit descriptor(int file) : file_(file) {}
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  ~descriptor() { static_cast<void>(close()); }
  int get() const { return file_; }
  int close() { return file_ < 0 ? 0 : ::close(std::exchange(file_, -1)); }

 private:
  int file_;
};

/// errno's text without strerror's shared buffer.
inline std::string reason(int error) {
  const char* text = ::strerrordesc_np(error);
  return text != nullptr ? text : "error " + std::to_string(error);
}

inline std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

/// Creates a file that did not exist, `<path>.writing-<process>-<n>`; n steps over what killed writers left. -1 with errno.
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

/// What a name stands for.
struct name_target {
  std::string path;    // the end of a chain of symbolic links, there or not
  bool named = false;  // a name that the system gives to an open file, such as /dev/stdout
  int file = -1;       // that open file, where it is one of this process
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

/// `kept`: what was there before is there still.
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

/// All bytes of a file or pipe.
///
/// @error not_found, unreadable (a folder, no permission, a device, an I/O error), out_of_memory; each with the path
inline result<file_bytes> read_file(const std::string& path) {
  const detail::descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) {
    const int error = errno;
    if (error == ENOENT || error == ENOTDIR) return fail(errc::not_found, "no such file", path, "check the path");
    return fail(errc::unreadable, "cannot open: " + detail::reason(error), path, "check the permissions");
  }
  struct stat status{};
  if (::fstat(file.get(), &status) != 0)
    return fail(errc::unreadable, "cannot stat: " + detail::reason(errno), path, "check the path and its permissions");
  if (S_ISDIR(status.st_mode)) return fail(errc::unreadable, "is a folder", path, "name a file in it");
  if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode)) return fail(errc::unreadable, "is not a file or a pipe", path, "name a file");

  // One byte past the expected size tells the end from a file that grew meanwhile.
  std::size_t capacity = S_ISREG(status.st_mode) ? static_cast<std::size_t>(status.st_size) + 1 : 65536, size = 0;
  std::unique_ptr<std::byte[]> bytes(new (std::nothrow) std::byte[capacity]);
  while (bytes != nullptr) {
    if (size == capacity) {
      std::unique_ptr<std::byte[]> larger(new (std::nothrow) std::byte[2 * capacity]);
      if (larger != nullptr) std::memcpy(larger.get(), bytes.get(), size);
      bytes = std::move(larger);
      capacity *= 2;
      continue;
    }
    const ssize_t got = ::read(file.get(), bytes.get() + size, capacity - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return fail(errc::unreadable, "read failed after " + std::to_string(size) + " bytes: " + detail::reason(errno), path,
                  "check the disk, and that nothing shortens the file");
    if (got == 0) return file_bytes(std::move(bytes), size);
    size += static_cast<std::size_t>(got);
  }
  return fail(errc::out_of_memory, "no memory for the file's " + std::to_string(capacity) + " bytes", path,
              "free memory, or take a smaller file");
}

namespace detail {

/// Writes all parts, counting the bytes in `done`. False with errno.
inline bool write_parts(int file, std::span<const std::span<const std::byte>> parts, std::size_t& done, const file_calls& calls) {
  for (auto part : parts)
    while (!part.empty()) {
      const ssize_t put = calls.write(file, part.data(), part.size());
      if (put < 0 && errno == EINTR) continue;
      if (put == 0) errno = ENOSPC;
      if (put <= 0) return false;
      done += static_cast<std::size_t>(put);
      part = part.subspan(static_cast<std::size_t>(put));
    }
  return true;
}

}  // namespace detail

/// Makes `path` hold the concatenation of `parts`. A regular file is replaced: a temporary in the same folder is written, synced and renamed, then
/// the folder is synced, so that at every moment the path names the old file or the new one, whole; after a failure, the old one. A symbolic link
/// stays, and what it points to is replaced. A pipe or a device is written to, and stays what it is; so is an open file of this process that a name of
/// the system stands for, such as /dev/stdout, from where it has been written to.
///
/// @error write_failed with the call, the bytes written and the system's reason; the temporary is removed
inline result<void> write_file(const std::string& path, std::span<const std::span<const std::byte>> parts, const file_calls& calls = {}) {
  std::size_t size = 0, done = 0;
  for (auto part : parts) size += part.size();
  struct stat old{};
  const bool there = calls.stat(path.c_str(), &old) == 0;
  const auto [target, named, open_file] = detail::target_of(path);
  if (there && S_ISDIR(old.st_mode)) return detail::write_failure(path, "open", EISDIR, 0, size);
  if (there && (named || !S_ISREG(old.st_mode))) {
    detail::descriptor through(open_file >= 0 ? ::fcntl(open_file, F_DUPFD_CLOEXEC, 0)
                                              : ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
    if (through.get() < 0) return detail::write_failure(path, "open", errno, 0, size);
    if (!detail::write_parts(through.get(), parts, done, calls)) return detail::write_failure(path, "write", errno, done, size, false);
    if (through.close() != 0) return detail::write_failure(path, "close", errno, done, size, false);
    return {};
  }
  std::string temporary;
  detail::descriptor file(detail::create_beside(target, temporary));
  if (file.get() < 0) return detail::write_failure(path, "creating a temporary", errno, 0, size);
  const auto give_up = [&](const char* call) {
    const int error = errno;
    ::unlink(temporary.c_str());
    return detail::write_failure(path, call, error, done, size);
  };
  if (!detail::write_parts(file.get(), parts, done, calls)) return give_up("write");
  if (there && ::fchmod(file.get(), old.st_mode & 07777) != 0) return give_up("fchmod");
  if (calls.sync(file.get()) != 0) return give_up("fsync");
  if (file.close() != 0) return give_up("close");
  if (calls.rename(temporary.c_str(), target.c_str()) != 0) return give_up("rename");
  // The new file is in place; only its survival of a power cut is open, which some file systems cannot promise at all.
  const detail::descriptor folder(::open(detail::folder_of(target).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() >= 0) static_cast<void>(calls.sync(folder.get()));
  return {};
}

/// The same for one piece of text.
inline result<void> write_file(const std::string& path, std::string_view text, const file_calls& calls = {}) {
  const std::span<const std::byte> part = std::as_bytes(std::span(text.data(), text.size()));
  return write_file(path, std::span(&part, 1), calls);
}

}  // namespace isotope::io
