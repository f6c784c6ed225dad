#pragma once
/// A step that is only a fused body, interpreted.
#include <isotope/fatbins/reference_elementwise.hpp>
#include <isotope/kernels/cuda/body/body.hpp>
#include <isotope/kernels/cuda/portable/elementwise.hpp>
#include <isotope/op/elementwise.hpp>

#include "elementwise.h"

namespace isotope::cuda {

template <GpuPrecision P> struct kernel<op::elementwise, P, kernels::reference> {
  static constexpr std::uint32_t inplace = 0xff;
  static void record(const launch& l, recording& r) {
    const std::int64_t n = l.out[0].dims.count();
    if (n == 0) return;
    const fused_body body(l);
    if (!body.known()) {
      enter_set(r, kernels::portable::name, "the interpreter does not know an op of the body");
      return kernel<op::elementwise, P, kernels::portable>::record(l, r);
    }
    std::vector<range> reads, writes;
    body.add_ranges(reads, writes);
    r.add(fatbins::reference_elementwise, "reference_elementwise", gpu::elementwise_arguments{body.arguments(), n}, per_item(n),
          std::move(reads), std::move(writes));
  }
};

}  // namespace isotope::cuda
