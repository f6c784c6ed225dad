#pragma once
// The arguments of native/decode_few_hopper.cu; included by host and device code.
#include "../device/hopper.h"
#include "halves.h"

namespace isotope::cuda::gpu {

/// Columns and rows of the boxes in which weights come to shared memory: an eighth of a row of 768, of up to 192 rows; and of a projection with 64 columns, 32 of 96 rows.
inline constexpr int decode_box = 96, decode_narrow_box = 32;
/// Cached positions of a block that come to shared memory before the launch before has ended. With so few, two blocks of any halves fit on a multiprocessor.
inline constexpr int decode_held_positions = 96;

/// Blocks that add up the rows of the logits together.
inline constexpr int decode_few_logits_ranks = 2;

/// The weights of a half as boxes.
struct decode_boxes {
  tensor_map_bytes weight, projection;
};
struct decode_few_attention {
  decode_boxes boxes;
  decode_attention half;
};
struct decode_few_mlp {
  decode_boxes boxes;
  decode_mlp half;
};
/// Shared memory of a block at most, of C columns.
constexpr int decode_few_line_bytes(int C, int lines) {
  const int own = C / decode_ranks;
  return 2 * own * lines + 4 * own + 4 * own * decode_most_rows * 2;
}
constexpr int decode_few_attention_bytes(int C) {
  return decode_few_line_bytes(C, 3 * decode_head) + 2 * C / decode_ranks * decode_head + 4 * decode_held_positions * decode_head +
         24 * decode_ranks * decode_head * 3 / 2 + 8 * decode_ranks * 3 + 12 * decode_head + 4 * C / 64 * decode_head + 8 * C / 64 +
         4 * decode_ranks * decode_head + decode_most_rows * (decode_pitch(decode_head) + 8 * decode_head) + 512;
}
constexpr int decode_few_mlp_bytes(int C) {
  const int hidden = 4 * C / decode_groups, lines = hidden / decode_ranks;
  return decode_few_line_bytes(C, hidden) + 2 * C / decode_ranks * hidden + 8 * hidden + 4 * decode_most_rows * hidden +
         8 * decode_ranks * decode_most_rows + decode_most_rows * decode_pitch(hidden) + 8 * lines + 512;
}

}  // namespace isotope::cuda::gpu
