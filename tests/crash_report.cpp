/// Linked into every test program: a crash names the running case and the libraries that were on the stack, so that a log of a machine out of reach tells
/// whether it happened in this project or in a driver. .ci/together reads these lines. The process ends by the same signal as without.
#include <execinfo.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>

namespace {

void say(const char* text) { [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text, std::strlen(text)); }

/// One line `crash: SIGNAL in SUITE.CASE`, one for each frame as `LIBRARY(+OFFSET) [ADDRESS]`, innermost first, and `crash: end`.
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
  ::backtrace(&warm, 1);  // loads what it needs while memory can still be had
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) std::signal(number, report_crash);
  return true;
}();

}  // namespace
