#pragma once
/// The clocks of a program.
#include <chrono>

namespace support {

/// Seconds since some moment; never goes back.
inline double seconds_now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Seconds since 1970, for the reader of a file.
inline double unix_seconds_now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

}  // namespace support
