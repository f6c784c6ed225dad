#pragma once
/// Ctrl-C and a polite kill ask the program to finish its step; a second one ends it at once.
#include <atomic>
#include <csignal>

namespace support {

inline std::atomic<bool> interrupt_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may only touch lock-free atomics");

inline void install_interrupt_handler() {
  struct sigaction action{};
  action.sa_handler = [](int) { interrupt_requested.store(true, std::memory_order_relaxed); };
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);  // SA_RESETHAND is the top bit of an int
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace support
