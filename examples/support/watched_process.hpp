#pragma once
/// Work in a process of its own, watched from outside: the only way to end a kernel that does not end by itself, or to outlive one that crashes.
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include <isotope/core/error.hpp>

namespace support {

/// What the process says of itself: each piece of its work before it begins.
class work_log {
 public:
  explicit work_log(int to) : to_(to) {}
  void begins(std::string_view what) const {
    const std::string line = std::string(what) + "\n";
    [[maybe_unused]] const auto n = ::write(to_, line.data(), line.size());  // shorter than what a pipe takes whole
  }

 private:
  int to_;
};

struct watched_end {
  enum class kind : std::uint8_t { exited, hung, crashed } how = kind::exited;
  int code = 0;      // of the exit, or the signal
  std::string work;  // the last that it began
};

/// Runs `body(const work_log&)`, which returns an exit code, in a child of this process, which must have one thread. The child is killed when a piece
/// of its work takes longer than `seconds`, and when this process dies.
/// @error out_of_memory: the system gives no process
template <class Body> isotope::result<watched_end> run_watched(double seconds, Body&& body) {
  int ends[2];
  if (::pipe(ends) != 0) return isotope::fail(isotope::errc::out_of_memory, "the system gives no pipe", "fork", "end other programs");
  std::fflush(nullptr);
  const pid_t parent = ::getpid(), child = ::fork();
  if (child < 0) return isotope::fail(isotope::errc::out_of_memory, "the system gives no process", "fork", "end other programs");
  if (child == 0) {
    ::close(ends[0]);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) std::_Exit(1);  // it died before
    std::exit(body(work_log(ends[1])));
  }
  ::close(ends[1]);
  watched_end e;
  std::string line;
  for (;;) {
    pollfd p{ends[0], POLLIN, 0};
    const int ready = ::poll(&p, 1, int(seconds * 1000));
    if (ready < 0) continue;  // a signal
    if (ready == 0) {
      ::kill(child, SIGKILL);
      e.how = watched_end::kind::hung;
      break;
    }
    char piece[512];
    const auto n = ::read(ends[0], piece, sizeof piece);
    if (n <= 0) break;
    for (const char c : std::string_view(piece, std::size_t(n)))
      if (c != '\n') line += c;
      else e.work = std::exchange(line, {});
  }
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  if (e.how == watched_end::kind::hung) return e;
  if (WIFSIGNALED(status)) e.how = watched_end::kind::crashed, e.code = WTERMSIG(status);
  else e.code = WEXITSTATUS(status);
  return e;
}

}  // namespace support
