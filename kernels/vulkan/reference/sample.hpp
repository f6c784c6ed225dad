#pragma once
/// Draws tokens from logits.
#include <isotope/op/sample.hpp>
#include <isotope/shaders/reference_sample.hpp>

#include "items.hpp"

namespace isotope::vulkan {

template <class P> struct kernel<op::sample, P, kernels::reference> {
  static constexpr std::uint32_t invocations = 128;  // of a workgroup, which has a row; every device can run as many
  /// Logits with repetition penalty, and weights, f32.
  static constexpr std::int64_t scratch(const step_shapes& s) { return 8 * s.in[3].count(); }
  static void record(const launch& l, recording& r) {
    using reference::word;
    const view &history = l.out[0], &recent = l.out[1], &position = l.out[2], &logits = l.in[3], &draw = l.in[4], &sampling = l.in[5],
               &key = l.in[6];
    const std::int64_t N = logits.dims[0], V = logits.dims[1];
    if (N == 0) return;
    const struct {
      std::uint64_t history, recent, position, logits, draw, sampling, key, scratch;
      std::uint32_t N, T, K, V, logits_stride, sampling_stride, key_stride, stream;
    } push{history.at,
           recent.at,
           position.at,
           logits.at,
           draw.at,
           sampling.at,
           key.at,
           l.scratch,
           word(N),
           word(history.dims[1]),
           word(recent.dims[0]),
           word(V),
           word(logits.strides[0]),
           word(sampling.strides[0]),
           word(key.strides[0]),
           op::sample::stream};
    const range own{l.scratch, 8 * N * V};
    r.add(shaders::reference_sample, constants{invocations, l.device->subgroup}.add(logits.type), push, cover(N, 1),
          {history, recent, position, logits, draw, sampling, key}, {history, recent, position, own});
  }
};

}  // namespace isotope::vulkan
