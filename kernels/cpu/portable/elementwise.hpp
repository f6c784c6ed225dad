#pragma once
/// A step that is only a fused body. Bound by bytes; tasks have 8192 elements.
#include <isotope/kernels/cpu/body/fused_body.hpp>
#include <isotope/kernels/cpu/body/programs.hpp>
#include <isotope/op/elementwise.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

struct elementwise {
  static constexpr std::uint32_t inplace = 0xff;
  static constexpr std::int64_t task = 8 * fused_body::block;

  static void run(const launch& l) {
    const std::int64_t n = l.out[0].dims.count();
    if (n == 0) return;
    const fused_body body(l);
    const double nsec = double(n) * (0.1 * double(l.in.size() + l.out.size()) + 0.3 * double(l.body.size()));
    for_tasks(l, divide_up(n, task), nsec, [&](std::int64_t t, int) { body.run(t * task, smaller(n, (t + 1) * task)); });
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable

namespace isotope::cpu {
template <VectorProgram P> struct kernel<op::elementwise, P, kernels::portable> : portable::elementwise {};
}  // namespace isotope::cpu
