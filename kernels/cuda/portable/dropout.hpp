#pragma once
/// Counter-based dropout, four elements per Philox call.
#include <cmath>

#include <isotope/kernels/cuda/portable/dropout.h>
#include <isotope/fatbins/dropout.hpp>
#include <isotope/op/dropout.hpp>

#include <isotope/kernels/cuda/rows/rows.hpp>

namespace isotope::cuda {

template <GpuPrecision P> struct kernel<op::dropout, P, kernels::portable> {
  static constexpr std::uint32_t inplace = 1;
  static constexpr bool counts_all_elements = true;
  static void record(const launch& l, recording& r) {
    constexpr portable::by_format vectors{"dropout_f32", "dropout_bf16", "dropout_f16"};
    const view &x = l.in[0], &y = l.out[0];
    const std::int64_t n = y.dims.count();
    if (n == 0) return;
    const auto c = l.constants<op::dropout>();
    const double p = c.p;
    const auto least = std::uint64_t(std::ceil(p * 0x1p32));  // the smallest word that keeps its element, at most 2^32
    const gpu::dropout_operands a{x.at,
                                  y.at,
                                  l.scalars,
                                  n,
                                  c.first,
                                  c.run,
                                  c.stride,
                                  l.ordinal,
                                  std::uint32_t(least - 1),
                                  std::int32_t(x.type),
                                  std::int32_t(y.type),
                                  least == 0,
                                  c.first % 4 == 0 && c.run % 4 == 0 && c.stride % 4 == 0,
                                  float(1 / (1 - p))};
    const std::int64_t run = portable::vector_elems(x.type);
    const bool wide = least > 0 && x.type == y.type && portable::loads_as_f32(x.type) && n % run == 0 && portable::all_aligned(x, y) &&
                      a.aligned != 0 && c.run % run == 0;
    r.add(fatbins::dropout, wide ? vectors.of(x.type) : "dropout", a,
          per_item(portable::divide_up(n, wide ? run * gpu::dropout_vectors : 4)), {x, scalars_of(l)}, {y});
  }
};

}  // namespace isotope::cuda
