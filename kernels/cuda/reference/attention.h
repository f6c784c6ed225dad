#pragma once
// Arguments of reference/attention.cu.
#include <cstdint>

namespace isotope::cuda::gpu {

/// Strides, in elements, of a tensor (B, rows, ...) whose last axis is contiguous.
struct attention_rows {
  std::int64_t batch, row;
};
struct reference_attention_arguments {
  std::uint64_t q, k, v, mask;  // (B, S, H D), (B, T, G D), (B, T, G D), (B, T); no mask: 0
  std::uint64_t y, lse;         // (B, S, H D), (B, H, S) f32
  std::uint64_t dy;             // (B, S, H D)
  std::uint64_t means;          // (B, H, S) f64, scratch
  std::uint64_t dq, dk, dv;     // (B, S, ...), (B, T, ...), (B, T, ...)
  std::uint64_t scalars;
  attention_rows q_at, k_at, v_at, mask_at, y_at, lse_at, dy_at, dq_at, dk_at, dv_at;
  std::int64_t B, S, T, H, G, D;  // H heads, G key-value heads
  std::int64_t window;            // most keys that a query sees; 0: no window
  double scale;
  double factor;       // scales kept probabilities: 1 / (1 - p)
  std::uint32_t last;  // a random word up to this one drops its probability
  std::uint32_t stream;
  std::uint32_t drawn_first, drawn_more;  // dropout counts head h of batch b as number b H + h + drawn_first + b drawn_more of all devices
  std::int32_t dropped, causal;
  std::int32_t q_type, k_type, v_type, mask_type, y_type, dy_type;  // gradients have the formats of their operands
};

}  // namespace isotope::cuda::gpu
