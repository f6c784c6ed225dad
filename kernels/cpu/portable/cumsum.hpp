#pragma once
/// Running sums along one axis, bound by the latency of one addition per element. Sums are kept in f64, so that each result rounds once.
#include <isotope/kernels/cpu/portable/softmax.hpp>
#include <isotope/op/cumsum.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

struct cumsum {
  static constexpr std::uint32_t inplace = 1;
  static constexpr std::int64_t scratch(const step_shapes& s) { return by_rows<1>::scratch(s); }
  static void run(const launch& l) {
    const bool reverse = l.constants<op::cumsum>().reverse;
    by_rows<1>::run(l, 1.2, [reverse](const float* const* x, float* y, std::int64_t n) {
      double sum = 0;
      if (reverse)
        for (std::int64_t i = n - 1; i >= 0; --i) y[i] = float(sum += double(x[0][i]));
      else
        for (std::int64_t i = 0; i < n; ++i) y[i] = float(sum += double(x[0][i]));
    });
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable

namespace isotope::cpu {
template <VectorProgram P> struct kernel<op::cumsum, P, kernels::portable> : portable::cumsum {};
}  // namespace isotope::cpu
