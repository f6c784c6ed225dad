#pragma once
/// e^x for softmax weights. Results below 2^-125 become zero, so that masked scores cost no subnormal arithmetic.
#include <isotope/kernels/cpu/native/math/power.hpp>
#include <isotope/kernels/cpu/native/math/power_of_two.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native::lanewise {

/// e^x for x <= 88, 0 below -87. Error: 1.5 ULP. NaN is kept.
ISOTOPE_INLINE vector weight(vector x) { return x < -87.0f ? all(0.0f) : multiple_of_exp<1.0f>(x); }

/// x[i] = e^x[i] for x <= 88, for weights that are rounded to bf16, of N vectors in step; 0 below -87. Error: 2^-16. NaN is kept. Needs has_pieces.
template <std::size_t N> ISOTOPE_INLINE void short_weights(vector (&x)[N]) {
  vector q[N];
  in_step<N>([&](std::size_t i) ISOTOPE_INLINE_LAMBDA { q[i] = x[i] < -87.0f ? all(-__builtin_inff()) : x[i] * 1.44269504f; });
  fraction_of_power(x, q);
  in_step<N>([&](std::size_t i) ISOTOPE_INLINE_LAMBDA { isa::scale_lanes(x[i], q[i]); });
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native::lanewise
