#pragma once
/// How programs end, and the one line they leave on stderr when they fail.
#include <isotope/core/error.hpp>

#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

namespace support {

inline constexpr int success = 0, runtime_failure = 1, usage_failure = 2, interrupted = 130;  // 128 + SIGINT, as shells report it

/// 2 for what the user gave (options, configuration, data, checkpoints), 1 for what happened while running.
constexpr int exit_code_of(isotope::errc code) {
  using isotope::errc;
  switch (code) {
    case errc::no_device:
    case errc::missing_feature:
    case errc::out_of_memory:
    case errc::over_budget:
    case errc::write_failed:
    case errc::in_use:
    case errc::non_finite:
    case errc::device_lost:
    case errc::timeout:
    case errc::peer_lost:
    case errc::wrong_device: return runtime_failure;
    case errc::interrupted: return interrupted;
    default: return usage_failure;
  }
}

/// `text` on one line: control characters, line ends among them, become blanks.
inline std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

/// Prints `program: text` on stderr.
inline void note(std::string_view program, const std::string& text) {
  const std::string line = std::string(program) + ": " + one_line(text) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

/// Prints `program: line` and returns the exit code of the failure.
inline int report(std::string_view program, const isotope::failure& f) {
  note(program, f.line());
  return exit_code_of(f.code);
}

/// A result that stays here when it failed: `if (failed(program, r, code)) return code;`
template <class T> bool failed(std::string_view program, const isotope::result<T>& r, int& code) {
  if (!r) code = report(program, r.error());
  return !r;
}

/// Runs a program's body; what the standard library throws, for want of memory above all, becomes a line and exit code 1. A file that reaches the
/// limit on file sizes is a failure of the write, which is told, and not the end of the process.
template <class Body> int guarded(std::string_view program, Body&& body) {
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return body();
  } catch (const std::exception& e) {
    return report(program, isotope::fail(isotope::errc::out_of_memory, std::string("the host ran out of memory or room: ") + e.what(), "",
                                         "use a smaller size"));
  }
}

}  // namespace support
