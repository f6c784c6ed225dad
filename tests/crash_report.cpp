/// Linked into every test program. On a crash, it prints the running test case and the libraries on the stack, so that a log shows whether this project or a
/// driver crashed. .ci/together reads these lines. The process then ends by the same signal.
#include <execinfo.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>

namespace {

void say(const char* text) { [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text, std::strlen(text)); }

/// Prints a line `crash: SIGNAL in SUITE.CASE`, a line `LIBRARY(+OFFSET) [ADDRESS]` for each frame, innermost first, and a line `crash: end`.
extern "C" void report_crash(int number) {
  std::signal(number, SIG_DFL);
  std::array<void*, 64> frames{};
  const int depth = ::backtrace(frames.data(), int(frames.size()));
  say("\ncrash: ");
  say(::sigabbrev_np(number));
  say(" in ");
  if (const auto* test = ::testing::UnitTest::GetInstance()->current_test_info()) {
    say(test->test_suite_name());
    say(".");
    say(test->name());
  } else {
    say("no case");
  }
  say("\n");
  ::backtrace_symbols_fd(frames.data(), depth, STDERR_FILENO);
  say("crash: end\n");
  std::raise(number);
}

const bool installed = [] {
  void* warm = nullptr;
  ::backtrace(&warm, 1);  // the first call loads a library, which may not be possible after a crash
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) std::signal(number, report_crash);
  return true;
}();

}  // namespace
