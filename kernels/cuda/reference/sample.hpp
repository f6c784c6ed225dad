#pragma once
/// Draws tokens from logits.
#include <isotope/backend/cuda/launch.hpp>
#include <isotope/fatbins/reference_sample.hpp>
#include <isotope/op/sample.hpp>

#include "sample.h"

namespace isotope::cuda {

template <class P> struct kernel<op::sample, P, kernels::reference> {
  /// Logits with repetition penalty, and weights, f32.
  static constexpr std::int64_t scratch(const step_shapes& s) { return 8 * s.in[3].count(); }
  static void record(const launch& l, recording& r) {
    const view &history = l.out[0], &recent = l.out[1], &position = l.out[2], &logits = l.in[3], &draw = l.in[4], &sampling = l.in[5],
               &key = l.in[6];
    const std::int64_t N = logits.dims[0], V = logits.dims[1];
    if (N == 0) return;
    gpu::reference_sample_arguments g{};
    g.history = history.at;
    g.recent = recent.at;
    g.position = position.at;
    g.logits = logits.at;
    g.draw = draw.at;
    g.sampling = sampling.at;
    g.key = key.at;
    g.values = l.scratch;
    g.weights = l.scratch + std::uint64_t(4 * N * V);
    g.logits_stride = logits.strides[0];
    g.sampling_stride = sampling.strides[0];
    g.key_stride = key.strides[0];
    g.N = N;
    g.T = history.dims[1];
    g.K = recent.dims[0];
    g.V = V;
    g.stream = op::sample::stream;
    g.logits_type = std::int32_t(logits.type);
    const range own{l.scratch, 8 * N * V};
    r.add(fatbins::reference_sample, "reference_sample", g, per_block(N, gpu::sample_threads),
          {history, recent, position, logits, draw, sampling, key}, {history, recent, position, own});
  }
};

}  // namespace isotope::cuda
