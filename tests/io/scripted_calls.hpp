#pragma once
/// Replaces a writer's system calls, to stop at a chosen one.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <isotope/io/file_writer.hpp>

namespace isotope {

/// Counts the calls, writes fewer bytes than asked for, and stops at call `stop_at`, with an error or by SIGKILL.
struct scripted_calls : io::file_calls {
  enum class how { error, kill };
  int* count;
  int stop_at;
  how stop = how::error;
  std::size_t longest_write = 7;

  scripted_calls(int* counter, int at, how h = how::error) : count(counter), stop_at(at), stop(h) {}
  bool stops() const {
    if ((*count)++ != stop_at) return false;
    if (stop == how::kill) ::kill(::getpid(), SIGKILL);
    errno = ENOSPC;
    return true;
  }
  ssize_t write(int file, const void* bytes, std::size_t size) const override {
    return stops() ? -1 : file_calls::write(file, bytes, std::min(size, longest_write));
  }
  ssize_t write_at(int file, const void* bytes, std::size_t size, off_t at) const override {
    return stops() ? -1 : file_calls::write_at(file, bytes, std::min(size, longest_write), at);
  }
  int sync(int file) const override { return stops() ? -1 : file_calls::sync(file); }
  int rename(const char* from, const char* to) const override { return stops() ? -1 : file_calls::rename(from, to); }
};

}  // namespace isotope
