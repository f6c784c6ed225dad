#pragma once
/// Rounds a part of C^T to bf16 and transposes it. Pairs of its rows become words, so one transpose of words moves twice as many numbers, and C is
/// written in whole cache lines.
#include <isotope/kernels/cpu/native/gemm/pairs.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// The sums at[i ld + j] for i < high <= 2 lanes, j < wide; whole vectors are readable.
struct transposed_part {
  const float* at;
  std::int64_t ld, high, wide;
};

/// y[j y_ld + i] = sums[i, j], rounded.
/// @tparam Exact  keeps subnormal sums
/// @return  whether nothing was lost
template <bool Exact> bool transpose_rounded(const transposed_part& x, bfloat16* y, std::int64_t y_ld) {
  vector r[lanes] = {}, least = 1 - vector{};
  const auto round = [&](std::int64_t i) ISOTOPE_INLINE_LAMBDA {
    vector v{};
    if (i < x.high) __builtin_memcpy(&v, x.at + i * x.ld, sizeof v);
    else if (!Exact) v = 1 - vector{};  // beyond C: not small, not written
    return Exact ? rounded(v) : rounded_quickly(v, least);
  };
#pragma GCC unroll 16
  for (std::int64_t i = 0; i < lanes; ++i) {
    const words pairs = interleave(round(2 * i), round(2 * i + 1));
    __builtin_memcpy(&r[i], &pairs, sizeof pairs);
  }
  transpose(r);
  const std::size_t bytes = std::size_t(x.high) * sizeof *y;
#pragma GCC unroll 16
  for (std::int64_t j = 0; j < lanes; ++j)
    if (j < x.wide) store_some(y + j * y_ld, r[j], bytes);
  return Exact || !any_below(least, 0x1p-126f);
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
