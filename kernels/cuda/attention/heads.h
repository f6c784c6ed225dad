#pragma once
// The operands of attention as kernels receive them; included by host and device code.
#include <cstdint>

namespace isotope::cuda::gpu {

/// Queries, keys, values, outputs or their gradients: the first row of head 0, and the strides between batches and rows in elements. A row
/// holds the elements of all heads, `D` for each.
struct head_rows {
  std::uint64_t at;
  std::int64_t batch, row;
  std::int32_t type;
};
struct attention_arguments {
  head_rows q, k, v, y, dy, dq, dk, dv;  // (B,S,H,D), (B,T,G,D), (B,T,G,D), and the others like q or like k
  std::uint64_t mask;                    // (B,T)
  std::int64_t mask_batch, mask_key;
  std::uint64_t lse, delta;  // (B,H,S) f32, dense; lse 0: not wanted; delta = rowsum(dy y)
  std::uint64_t scalars;
  std::int32_t mask_type;
  std::int32_t B, H, G, S, T, D;
  std::int32_t causal, masked, dropped, window;  // window 0: none
  float scale;
  std::int32_t wide;   // every row starts at a multiple of four elements
  float factor;        // scales kept probabilities: 1 / (1 - p), or 1
  std::uint32_t last;  // a random word up to this one drops its probability
  std::uint32_t stream;
  std::uint32_t drawn_first, drawn_more;  // dropout counts the rows of head (b, h) from (b H + h + drawn_first + b drawn_more) S on
};

}  // namespace isotope::cuda::gpu
