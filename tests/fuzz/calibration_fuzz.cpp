// Reads arbitrary bytes as a file of calibrations: they are ignored with a reason in one line, or give figures in range that read back the same.
#include <cstddef>
#include <cstdint>
#include <isotope/calibrate/calibration_file.hpp>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto got = isotope::parse_calibrations({reinterpret_cast<const char*>(data), size}, "input", "d");
  if (!got.ignored.empty()) {
    if (!got.all.empty() || got.ignored.find('\n') != got.ignored.npos) __builtin_trap();
    return 0;
  }
  for (const auto& c : got.all)
    for (const auto& f : c.figures)
      if (!(f.value >= 0 && f.value < 1e18)) __builtin_trap();
  if (got.all.empty()) return 0;
  const auto again = isotope::parse_calibrations(isotope::text_of(got.all), "input", "d");
  if (!again.ignored.empty() || again.all.size() != got.all.size() || again.all.front().figures != got.all.front().figures)
    __builtin_trap();
  return 0;
}
