#pragma once
/// Draws tokens from logits.
#include <isotope/backend/cuda/launch.hpp>
#include <isotope/fatbins/reference_sample.hpp>
#include <isotope/op/sample.hpp>

#include "sample.h"

namespace isotope::cuda {

inline gpu::reference_sample_arguments sample_arguments_of(const launch& l) {
  const view &history = l.out[0], &recent = l.out[1], &logits = l.in[3], &sampling = l.in[5], &key = l.in[6];
  gpu::reference_sample_arguments g{};
  g.history = history.at;
  g.recent = recent.at;
  g.position = l.out[2].at;
  g.logits = logits.at;
  g.draw = l.in[4].at;
  g.sampling = sampling.at;
  g.key = key.at;
  g.logits_stride = logits.strides[0];
  g.sampling_stride = sampling.strides[0];
  g.key_stride = key.strides[0];
  g.N = logits.dims[0];
  g.T = history.dims[1];
  g.K = recent.dims[0];
  g.V = logits.dims[1];
  g.stream = op::sample::stream;
  g.logits_type = std::int32_t(logits.type);
  return g;
}
/// What kernels of sample read.
inline std::vector<range> sample_reads(const launch& l) { return {l.out[0], l.out[1], l.out[2], l.in[3], l.in[4], l.in[5], l.in[6]}; }

template <class P> struct kernel<op::sample, P, kernels::reference> {
  /// Logits with repetition penalty, and weights, f32.
  static constexpr std::int64_t scratch(const step_shapes& s) { return 8 * s.in[3].count(); }
  static void record(const launch& l, recording& r) {
    auto g = sample_arguments_of(l);
    if (g.N == 0) return;
    g.values = l.scratch;
    g.weights = l.scratch + std::uint64_t(4 * g.N * g.V);
    const range own{l.scratch, 8 * g.N * g.V};
    r.add(fatbins::reference_sample, "reference_sample", g, per_block(g.N, gpu::sample_threads), sample_reads(l),
          {l.out[0], l.out[1], l.out[2], own});
  }
};

}  // namespace isotope::cuda
