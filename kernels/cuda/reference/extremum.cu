// Maximum, minimum and argmax: a thread has one part of a result and takes every `parts`-th element. The first element that no later
// one beats wins; NaN beats all. Bound by bytes.
#include "../device/access.cuh"
#include "reduce.h"

namespace isotope::cuda::gpu {

inline constexpr int extremum_min = 1, extremum_argmax = 2;
inline constexpr std::uint64_t greatest = ~std::uint64_t(0);

/// The order of a float with `exponent` and `mantissa` bits: it grows with the number, and NaN is the greatest. -0 is below 0, unless zeros
/// are equal.
__device__ inline std::uint64_t order_of_float(std::uint64_t bits, int exponent, int mantissa, bool equal_zeros) {
  const std::uint64_t one = 1, sign = one << (exponent + mantissa), magnitude = bits & (sign - one);
  if (magnitude > ((one << exponent) - one) << mantissa) return greatest;
  const bool below = (bits & sign) != 0 && !(equal_zeros && magnitude == 0);
  return below ? sign - magnitude - one : sign + magnitude;
}
__device__ inline std::uint64_t order_of(std::uint64_t base, std::int64_t i, int t, bool equal_zeros) {
  switch (t) {
    case f64: return order_of_float(pointer<const std::uint64_t>(base)[i], 11, 52, equal_zeros);
    case f32: return order_of_float(pointer<const std::uint32_t>(base)[i], 8, 23, equal_zeros);
    case bf16: return order_of_float(pointer<const std::uint16_t>(base)[i], 8, 7, equal_zeros);
    case f16: return order_of_float(pointer<const std::uint16_t>(base)[i], 5, 10, equal_zeros);
    case i64: return pointer<const std::uint64_t>(base)[i] ^ std::uint64_t(1) << 63;
    case i32: return pointer<const std::uint32_t>(base)[i] ^ 0x80000000u;
    case u32: return pointer<const std::uint32_t>(base)[i];
    case u16: return pointer<const std::uint16_t>(base)[i];
    default: return pointer<const std::uint8_t>(base)[i];
  }
}

extern "C" __global__ void __launch_bounds__(1024) reference_extremum(const __grid_constant__ reduce_arguments a) {
  const std::int64_t i = item();
  if (i >= a.results * a.parts) return;
  const std::int64_t from = offset_of(i % a.results, a.axes, 0, a.outer), first = i / a.results;
  std::int64_t winner = 0, index = 0;
  std::uint64_t best = 0;
  for (std::int64_t t = first; t < a.terms; t += a.parts) {
    const std::int64_t at = from + offset_of(t, a.axes, a.outer, a.axes.rank);
    std::uint64_t rank = order_of(a.x, at, a.x_type, a.which == extremum_argmax);
    if (a.which == extremum_min && rank != greatest) rank = greatest - rank - 1;
    if (t == first || rank > best) {
      best = rank;
      winner = at;
      index = t;
    }
  }
  if (a.which == extremum_argmax) pointer<std::int32_t>(a.y)[i] = std::int32_t(index);
  else store(a.y, i, a.y_type, load(a.x, winner, a.x_type));
}

}  // namespace isotope::cuda::gpu
