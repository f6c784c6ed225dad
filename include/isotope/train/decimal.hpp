#pragma once
/// Formats numbers independently of the locale, for events and plots.
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>

namespace isotope::train {

/// Returns the shortest decimal text that reads back as the same number; "nan", "inf", "-inf".
inline std::string shortest(double v) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, v).ptr};
}

/// Returns v with `digits` digits after the point: fixed(1.25, 1) = "1.2" (ties to even in binary).
inline std::string fixed(double v, int digits) {
  char buffer[400];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, v, std::chars_format::fixed, digits);
  return {buffer, end.ptr};
}

/// Returns d.ddde-XX with `digits` digits after the point.
inline std::string scientific(double v, int digits) {
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, v, std::chars_format::scientific, digits);
  return {buffer, end.ptr};
}

/// Formats a loss or norm for reading: `digits` digits after the point, or an exponent from a million on, where decimals are meaningless.
inline std::string figure(double v, int digits) {
  return std::abs(v) < 1e6 || !std::isfinite(v) ? fixed(v, digits) : scientific(v, digits);
}

/// Returns three significant digits with a unit letter: 950, 15.3k, 1.25M; "-" if it is not a number.
inline std::string scaled(double v) {
  if (!std::isfinite(v) || v < 0) return "-";
  const char* unit = "";
  for (const char* next : {"k", "M", "G", "T"}) {
    if (v < 999.5) break;
    v /= 1000;
    unit = next;
  }
  const int digits = *unit == 0 || v >= 99.95 ? 0 : v >= 9.995 ? 1 : 2;
  return fixed(v, digits) + unit;
}

/// Returns 0:07, 12:34, 1:02:03; "-:--" if it is not a duration.
inline std::string clock_text(double seconds) {
  if (!(seconds >= 0) || seconds > 3.6e8) return "-:--";
  const auto whole = std::int64_t(seconds + 0.5);
  const auto two = [](std::int64_t n) { return (n < 10 ? "0" : "") + std::to_string(n); };
  const std::int64_t hours = whole / 3600, minutes = whole / 60 % 60;
  return (hours > 0 ? std::to_string(hours) + ":" + two(minutes) : std::to_string(minutes)) + ":" + two(whole % 60);
}

}  // namespace isotope::train
