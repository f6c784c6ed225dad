#pragma once
/// Bound by bytes. The value is converted once, as op::cast would, and repeated.
#include <isotope/kernels/cpu/portable/cast.hpp>
#include <isotope/op/fill.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

struct fill {
  static constexpr std::int64_t task = 1 << 15;

  static void run(const launch& l) {
    const view& y = l.out[0];
    const std::int64_t n = y.dims.count(), bytes = size_of(y.type);
    alignas(8) std::byte one[8];
    convert_exactly(l.constants<op::fill>().x, one, y.type, 0);
    for_tasks(l, divide_up(n, task), double(n * bytes) * 0.03, [&](std::int64_t t, int) {
      const std::int64_t first = t * task, some = smaller(task, n - first);
      copy_run(one, 0, 0, y.data, first, some, bytes);
    });
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable

namespace isotope::cpu {
template <VectorProgram P> struct kernel<op::fill, P, kernels::portable> : portable::fill {};
}  // namespace isotope::cpu
