#pragma once
// e^x for x <= 0 where it is summed or rounded to 16 bits; NaN gives NaN.
#include "vectors.cuh"

namespace isotope::cuda::gpu {

/// For 16-bit formats the error of e^x is at most (2 + 2 |x|) units in the last place of f32: that of the exponent and that of ex2.approx.
template <int T> __device__ inline float exponential(float x) {
  if constexpr (T == f32) {
    return expf(x);
  } else {
#if defined(ISOTOPE_EMULATED_DEVICE)
    return exp2f(x * 1.44269504f);
#else
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.44269504f));
    return y;
#endif
  }
}

}  // namespace isotope::cuda::gpu
