#pragma once
/// Bound by bytes. Additions walk the indices of a row once for each block of its elements, whose sums stay on the stack.
#include <limits>

#include <isotope/kernels/cpu/body/programs.hpp>
#include <isotope/kernels/cpu/rows/rows.hpp>
#include <isotope/op/take_along.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

struct take_along {
  static void run(const launch& l) {
    const view &x = l.in[0], &y = l.out[0];
    const std::int64_t N = x.dims[-1], K = y.dims[-1], rows = K == 0 ? 0 : y.dims.count() / K;
    const auto* index = l.in[1].as<const std::int32_t>();
    const float none = l.constants<op::take_along>().zeros ? 0.0F : std::numeric_limits<float>::quiet_NaN();
    for_rows(l, rows, double(rows * K), [&](std::int64_t r, int) {
      for (std::int64_t i = r * K; i < (r + 1) * K; ++i) {
        float v = none;
        if (index[i] >= 0 && index[i] < N) widen_run(x.data, x.type, r * N + index[i], 1, &v, 1);
        narrow_run(&v, y.data, y.type, i, 1);
      }
    });
  }
};

struct scatter_add {
  static constexpr std::int64_t block = 1024;

  static void run(const launch& l) {
    const view &x = l.in[0], &updates = l.in[1], &y = l.out[0];
    const std::int64_t N = x.dims[-1], K = updates.dims[-1], rows = N == 0 ? 0 : x.dims.count() / N;
    const auto* index = l.in[2].as<const std::int32_t>();
    const std::int64_t blocks = divide_up(N, block);
    for_rows(l, rows * blocks, double(rows) * double(N + K * blocks) * 0.3, [&](std::int64_t task, int) {
      const std::int64_t r = task / blocks, first = task % blocks * block, n = smaller(block, N - first);
      alignas(64) float sums[block];
      widen_run(x.data, x.type, r * N + first, 1, sums, n);
      for (std::int64_t i = r * K; i < (r + 1) * K; ++i) {
        const std::int64_t to = index[i] - first;
        if (to < 0 || to >= n) continue;
        float v = 0;
        widen_run(updates.data, updates.type, i, 1, &v, 1);
        sums[to] += v;
      }
      narrow_run(sums, y.data, y.type, r * N + first, n);
    });
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable

namespace isotope::cpu {
template <VectorProgram P> struct kernel<op::take_along, P, kernels::portable> : portable::take_along {};
template <VectorProgram P> struct kernel<op::scatter_add, P, kernels::portable> : portable::scatter_add {};
}  // namespace isotope::cpu
