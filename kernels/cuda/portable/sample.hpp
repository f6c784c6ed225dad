#pragma once
/// Draws tokens from logits by radix selection.
#include <isotope/fatbins/sample.hpp>
#include <isotope/kernels/cuda/reference/sample.hpp>
#include <isotope/kernels/cuda/rows/rows.hpp>

#include "sample.h"

namespace isotope::cuda {

template <GpuPrecision P> struct kernel<op::sample, P, kernels::portable> {
  static constexpr std::int64_t scratch(const step_shapes& s) { return portable::scratch_below<op::sample, P>(s); }
  static void record(const launch& l, recording& r) {
    const auto g = sample_arguments_of(l);
    if (g.N == 0) return;
    constexpr std::int64_t most_shared = 30 << 10;  // beside what the kernel has statically, within the 48 KB that every device has
    if (gpu::sample_shared_bytes(g.V) > most_shared) return portable::fall_through<op::sample, P>(l, r, "more than 245,760 tokens");
    const dtype t = l.in[3].type;
    if (t != dtype::f32 && t != dtype::bf16 && t != dtype::f16)
      return portable::fall_through<op::sample, P>(l, r, "the format is not f32, bf16 or f16");
    r.add(fatbins::sample,
          t == dtype::f32    ? "sample_f32"
          : t == dtype::bf16 ? "sample_bf16"
                             : "sample_f16",
          g, per_block(g.N, gpu::portable_sample_threads, gpu::sample_shared_bytes(g.V)), sample_reads(l), {l.out[0], l.out[1], l.out[2]});
  }
};

}  // namespace isotope::cuda
