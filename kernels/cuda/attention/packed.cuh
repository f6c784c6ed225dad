#pragma once
// Attention of packed sequences by the kernels that attend to whole ones.
#include "../device/early.cuh"
#include "../device/packed_rows.cuh"
#include "operands.cuh"
#include "packed.h"

namespace isotope::cuda::gpu {

/// Calls attend(arguments, head, q0) with the arguments of the block's sequence, and the head and the query in it from which on the block owns
/// OWN of them. Heads of the same rows are neighbours. Writes zeros to rows of no sequence.
template <int OWN, class F> __device__ inline void attend_in_sequence(const packed_heads_arguments& p, const F& attend) {
  start_dependents();
  wait_for_dependencies();
  attention_arguments a = p.heads;
  const int head = int(blockIdx.x % unsigned(a.H));
  const packed_place at = place_of_packed<OWN>(p.starts, p.sequences, a.S, std::int64_t(blockIdx.x / unsigned(a.H)));
  if (at.empty()) return;
  if (at.outside) {
    const std::int64_t first = at.first + at.own, rows = at.end - first < OWN ? at.end - first : OWN;
    for (int i = int(threadIdx.x); i < int(rows) * a.D; i += int(blockDim.x))
      store(a.y.at, (first + i / a.D) * a.y.row + std::int64_t(head) * a.D + i % a.D, a.y.type, 0.0f);
    return;
  }
  const auto start = [&](head_rows& x) { x.at += std::uint64_t(at.first * x.row) * (x.type == f32 ? 4u : 2u); };
  start(a.q), start(a.k), start(a.v), start(a.y);
  a.S = a.T = int(at.end - at.first);
  attend(a, head, int(at.own));
}

}  // namespace isotope::cuda::gpu
