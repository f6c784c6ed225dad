#pragma once
/// The logarithm of a row's sum of exponentials, from one pass over memory.
#include <cmath>
#include <limits>

#include <isotope/kernels/cpu/native/math/weight.hpp>
#include <isotope/kernels/cpu/native/rows/row_vectors.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// Returns the largest x[i]; NaN is ignored.
template <class T> ISOTOPE_INLINE float largest(const T* x, std::int64_t n) {
  constexpr float least = -std::numeric_limits<float>::infinity();
  vector top[4];
  for (vector& v : top) v = lanewise::all(least);
  for_vectors<4>(n, [&](std::int64_t j, auto part, auto amount) ISOTOPE_INLINE_LAMBDA {
    const vector v = within(load(x + j, amount), amount, least);
    top[part] = lanewise::larger(v, top[part]);
  });
  const auto larger = [](vector& a, const vector& b) ISOTOPE_INLINE_LAMBDA { a = b > a ? b : a; };
  math::fold_parts<2>(top, larger);
  return math::fold<float>(top[0], larger);
}

/// ln sum_i e^x[i] = top + ln sum. NaN where an x[i] is NaN or +inf, or all are -inf.
struct exponential_sum {
  static constexpr std::int64_t block = 4096;  // 8 or 16 KB: stays in L1 between the two passes over it

  float top = -std::numeric_limits<float>::infinity(), sum = 0;
  template <class T> explicit exponential_sum(const T* x, std::int64_t n) {
    double total = 0;
    for (std::int64_t i = 0; i < n; i += block) {
      const std::int64_t some = smaller(block, n - i);
      const float high = largest(x + i, some);
      if (high > top) {
        if (i != 0) total *= std::exp(double(top) - double(high));
        top = high;
      }
      const float zero = top < 0 && std::isinf(top) ? 0 : top;  // -inf - -inf would be NaN, and larger numbers may follow
      float y[1];
      sum_columns<1, 4>(some, y, [&](auto& s, std::int64_t j, auto amount) ISOTOPE_INLINE_LAMBDA {
        __builtin_prefetch(x + i + j + block);  // otherwise the pass for the maximum would wait for memory and this one for flops
        s[0] += within(lanewise::weight(load(x + i + j, amount) - zero), amount);
      });
      total += double(y[0]);
    }
    sum = top < 0 && std::isinf(top) ? std::numeric_limits<float>::quiet_NaN() : float(total);
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
