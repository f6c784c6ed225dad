#pragma once
/// The one clock of a program.
#include <chrono>

namespace support {

/// Seconds since some moment; never goes back.
inline double seconds_now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace support
