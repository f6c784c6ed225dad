#pragma once
/// What an op promises about its arithmetic, as data: specifications derive bounds from it, and docs/NUMERICS.md is its table.
#include <cstdint>
#include <string_view>

namespace isotope::conform {

struct numeric_policy {
  std::string_view sums = "none";  // order of its sums
  bool contracts = false;          // multiply-add without rounding the product
  bool flushes_on_gpu = true;      // subnormal numbers may become zero there
  bool flushes_pairs = false;      // on a processor those of 16 bits may, too, because its pair multiplications flush them; others never do
  std::string_view nan = "in, then out";  // where a NaN goes
  /// Units in the last place, in the format of the arithmetic, by which exponentials, logarithms and similar functions may be off; 0: it has none.
  std::int32_t cpu_ulps = 0, gpu_ulps = 0;

  std::int32_t ulps(bool gpu) const { return gpu ? gpu_ulps : cpu_ulps; }
  bool elementary() const { return cpu_ulps > 0 || gpu_ulps > 0; }
};

/// The error budget of elementary functions.
inline constexpr std::int32_t usual_cpu_ulps = 4, usual_gpu_ulps = 16;

}  // namespace isotope::conform
