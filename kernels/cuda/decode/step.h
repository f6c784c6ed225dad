#pragma once
// The arguments of native/decode_step_hopper.cu; included by host and device code.
#include "../device/hopper.h"
#include "halves.h"

namespace isotope::cuda::gpu {

/// Layers of a step at most.
inline constexpr int decode_step_layers = 12;
/// Threads of a block: 16 warps that multiply and attend, three that add up the residual, and one that copies weights.
inline constexpr int decode_step_threads = 640;
/// Cached positions of a block.
inline constexpr int decode_step_positions = decode_most_positions / decode_ranks;

/// What a layer reads. Weights are boxes: of 96 columns by 64 rows, 32 by 96, 96 by 256, and 32 by 96.
struct decode_step_layer {
  tensor_map_bytes weight, projection, up, down;
  std::uint64_t norm_weight[2], norm_bias[2];               // (C) bf16, of the attention half and of the MLP half
  std::uint64_t bias, projection_bias, up_bias, down_bias;  // (3 C), (C), (4 C), (C) bf16
  std::uint64_t keys, values;                               // (B, H, T, D) bf16, to which the key and value of the row are added
};
/// A step of decoding of one row: all layers, the last norm, and the logits.
struct decode_step {
  decode_step_layer layer[decode_step_layers];
  tensor_map_bytes table_boxes;      // of the table as (C / 96, V, 96), in boxes of 8 by 16 by 96
  decode_rows rows;                  // of the first layer, and the norm of the last row
  std::uint64_t table, logits;       // (V, C), (V) bf16
  std::uint64_t sequence, position;  // (1) i32
  std::uint64_t words;  // (2, H, C) pairs of f32 and u32: parts of the residual row, and the number of the exchange that they are of
  std::uint64_t run;    // (1) u32: how many runs there were
  std::int32_t layers, B, T, V;
  float scale;  // of scores, times log2(e)
};

/// Shared memory of a block, of C columns.
constexpr int decode_step_bytes(int C) {
  const int own = C / decode_ranks, hidden = 4 * C / (C / decode_head), lines = 3 * decode_head;
  return 2 * own * (lines + hidden + decode_head + hidden) + 4 * decode_head * decode_step_positions + 12 * own +
         8 * decode_ranks * (lines + hidden) + 4 * decode_ranks * (lines + hidden) + 16 * decode_ranks + 4 * decode_head +
         16 * (4 * decode_head + 8) + decode_ranks * (4 * decode_head + 8) + 2 * decode_head + 4 * own + 512;
}

}  // namespace isotope::cuda::gpu
