#pragma once
/// Attention over cached keys and values by the definition.
#include <isotope/backend/cuda/launch.hpp>
#include <isotope/fatbins/reference_attention_cached.hpp>
#include <isotope/op/attention_cached.hpp>

#include "attention_cached.h"

namespace isotope::cuda {

template <class P> struct kernel<op::attention_cached, P, kernels::reference> {
  static void record(const launch& l, recording& r) {
    const auto c = l.constants<op::attention_cached>();
    const view &q = l.in[0], &keys = l.in[1], &values = l.in[2], &sequence = l.in[3], &position = l.in[4], &y = l.out[0];
    const op::cache_sizes size(keys.dims);
    const auto n = q.dims[0] * c.heads;
    if (n == 0) return;
    gpu::cached_attention_arguments g{};
    g.q = q.at;
    g.keys = keys.at;
    g.values = values.at;
    g.sequence = sequence.at;
    g.position = position.at;
    g.y = y.at;
    g.q_stride = q.strides[0];
    g.y_stride = y.strides[0];
    g.N = q.dims[0];
    g.B = size.B;
    g.H = c.heads;
    g.G = size.G;
    g.T = size.T;
    g.D = size.D;
    g.window = c.window;
    g.scale = c.scale;
    g.q_type = std::int32_t(q.type);
    g.cache_type = std::int32_t(keys.type);
    g.y_type = std::int32_t(y.type);
    r.add(fatbins::reference_attention_cached, "reference_attention_cached", g, per_item(n), {q, keys, values, sequence, position}, {y});
  }
};

}  // namespace isotope::cuda
