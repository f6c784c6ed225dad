#pragma once
/// Draws tokens from logits.
#include <isotope/op/sample.hpp>
#include <isotope/shaders/reference_sample.hpp>

#include "items.hpp"

namespace isotope::vulkan {

/// The push constants of the shaders that draw tokens; mirrors rows/sample.glsl.
struct sample_operands {
  dtype logits;
  struct {
    std::uint64_t history, recent, position, logits, draw, sampling, key, scratch;
    std::uint32_t N, T, K, V, logits_stride, sampling_stride, key_stride, stream;
  } push;

  explicit sample_operands(const launch& l) : logits(l.in[3].type) {
    using reference::word;
    const view &history = l.out[0], &recent = l.out[1], &x = l.in[3], &sampling = l.in[5], &key = l.in[6];
    push = {history.at,
            recent.at,
            l.out[2].at,
            x.at,
            l.in[4].at,
            sampling.at,
            key.at,
            l.scratch,
            word(x.dims[0]),
            word(history.dims[1]),
            word(recent.dims[0]),
            word(x.dims[1]),
            word(x.strides[0]),
            word(sampling.strides[0]),
            word(key.strides[0]),
            op::sample::stream};
  }
  static std::vector<range> reads(const launch& l) { return {l.out[0], l.out[1], l.out[2], l.in[3], l.in[4], l.in[5], l.in[6]}; }
};

template <class P> struct kernel<op::sample, P, kernels::reference> {
  static constexpr std::uint32_t invocations = 128;  // of a workgroup, which has a row; every device can run as many
  /// Logits with repetition penalty, and weights, f32.
  static constexpr std::int64_t scratch(const step_shapes& s) { return 8 * s.in[3].count(); }
  static void record(const launch& l, recording& r) {
    const sample_operands o(l);
    if (o.push.N == 0) return;
    const range own{l.scratch, std::int64_t(8) * o.push.N * o.push.V};
    r.add(shaders::reference_sample, constants{invocations, l.device->subgroup}.add(o.logits), o.push, cover(o.push.N, 1),
          sample_operands::reads(l), {l.out[0], l.out[1], l.out[2], own});
  }
};

}  // namespace isotope::vulkan
