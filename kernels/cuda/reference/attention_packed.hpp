#pragma once
/// Attention of packed sequences by the definition.
#include <isotope/backend/cuda/launch.hpp>
#include <isotope/fatbins/reference_attention_packed.hpp>
#include <isotope/op/attention_packed.hpp>

#include "attention_packed.h"

namespace isotope::cuda {

template <class P> struct kernel<op::attention_packed, P, kernels::reference> {
  static void record(const launch& l, recording& r) {
    const auto c = l.constants<op::attention_packed>();
    const view &q = l.in[0], &k = l.in[1], &v = l.in[2], &starts = l.in[3], &y = l.out[0];
    const auto n = q.dims[0] * c.heads;
    if (n == 0) return;
    gpu::packed_attention_arguments g{};
    g.q = q.at;
    g.k = k.at;
    g.v = v.at;
    g.starts = starts.at;
    g.y = y.at;
    g.q_stride = q.strides[0];
    g.k_stride = k.strides[0];
    g.v_stride = v.strides[0];
    g.y_stride = y.strides[0];
    g.N = q.dims[0];
    g.B = starts.dims[0] - 1;
    g.H = c.heads;
    g.D = q.dims[1] / c.heads;
    g.scale = c.scale;
    g.causal = c.causal ? 1 : 0;
    g.type = std::int32_t(q.type);
    r.add(fatbins::reference_attention_packed, "reference_attention_packed", g, per_item(n), {q, k, v, starts}, {y});
  }
};

}  // namespace isotope::cuda
