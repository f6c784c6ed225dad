#pragma once
/// Muon's update of a weight that has a packed copy: it works on pairs of rows, which are packed while in cache. Bound by bytes.
#include <isotope/kernels/cpu/native/body/programs.hpp>
#include <isotope/kernels/cpu/native/gemm/packed_weight.hpp>
#include <isotope/kernels/cpu/portable/muon.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

struct muon {
  static constexpr bool packs = true;

  static void run(const launch& l) {
    const portable::optimizer_step step(l);
    if (l.constants<op::muon>().columns == 0) return portable::muon::run(l);
    if (step.skipped()) return;
    const std::int64_t columns = l.constants<op::muon>().columns, rows = l.out[0].dims.count() / columns;
    const packed_weight copy(rows, columns);
    void* const packed = l.out[2].data;
    packed_weight::forget(packed);
    const std::int64_t some = larger_of(2, portable::optimizer_step::task / columns / 2 * 2);
    portable::for_tasks(l, divide_up(rows, some), double(rows) * double(columns) * 0.4, [&](std::int64_t t, int) {
      exponents found;
      const std::int64_t end = smaller(rows, (t + 1) * some);
      for (std::int64_t k = t * some; k < end; k += 2) {
        const std::int64_t last = smaller(k + 2, end);
        step.each_block(l, k * columns, last * columns,
                        [&](std::int64_t i, std::int64_t n, bool decays) { portable::muon::update(l, step, i, n, decays); });
        copy.take(l.out[0].as<const float>() + k * columns, k, last, packed, false, found);
      }
      packed_weight::note(packed, found);
    });
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native

namespace isotope::cpu {
template <NativeProgram P> struct kernel<op::muon, P, kernels::native> : native::muon {};
}  // namespace isotope::cpu
