#pragma once
/// What an op promises of its arithmetic, as data: bounds of specifications are made of it, and docs/NUMERICS.md is its table.
#include <cstdint>
#include <string_view>

namespace isotope::conform {

struct numeric_policy {
  std::string_view sums = "none";         // order of its sums
  bool contracts = false;                 // multiply-add without rounding the product
  bool flushes_on_gpu = true;             // subnormal numbers may be taken for zero there
  bool flushes_pairs = false;             // those of 16 bits on a processor, too, whose products of pairs do so; else never there
  std::string_view nan = "in, then out";  // where a NaN goes
  /// Units in the last place that its exponentials, logarithms and their like may be off by, in the format of the arithmetic; 0: it has none.
  std::int32_t cpu_ulps = 0, gpu_ulps = 0;

  std::int32_t ulps(bool gpu) const { return gpu ? gpu_ulps : cpu_ulps; }
  bool elementary() const { return cpu_ulps > 0 || gpu_ulps > 0; }
};

/// The budget of elementary functions.
inline constexpr std::int32_t usual_cpu_ulps = 4, usual_gpu_ulps = 16;

}  // namespace isotope::conform
