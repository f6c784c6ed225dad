#pragma once
// The arguments of native/decode_step_few_hopper.cu; included by host and device code.
#include "few.h"
#include "step.h"

namespace isotope::cuda::gpu {

/// Threads of a block: 16 warps that multiply and attend, six that add up the residual rows, one that copies weights, and one that copies cached rows.
inline constexpr int decode_step_few_threads = 768;
/// Cached positions of a copy, which two warps read. So many pairs of warps have shared memory for a copy of their own, and the others that of weights of the first product, once
/// these have been read.
inline constexpr int decode_step_chunk = 32, decode_step_own_chunks = 5, decode_step_lent_chunks = 3;
/// Bytes of a copy: keys, then values.
inline constexpr int decode_step_chunk_bytes = 4 * decode_step_chunk * decode_head;

/// A step of decoding of up to eight rows. In `step`, rows has N rows, logits are (N, V), sequence and position (N), and words is described at decode_step_few_words.
struct decode_step_few {
  decode_step step;
  tensor_map_bytes keys[decode_step_layers],
      values[decode_step_layers];  // of caches as (B H T, 64), in boxes of 64 by decode_step_chunk, swizzled
};
/// Bytes of words, of C columns: (2, H, 8, decode_most_rows, C / 8) f32, parts of the residual rows. The last bit of each number is not its own: it changes whenever the word is
/// written. Behind them is a u32 that says how often words were written: `run`.
constexpr std::int64_t decode_step_few_words(int C) { return std::int64_t(2) * (C / decode_head) * decode_most_rows * C * 4; }

/// Shared memory of a block, of C columns.
constexpr int decode_step_few_bytes(int C) {
  const int own = C / decode_ranks, hidden = 4 * C / (C / decode_head), lines = 3 * decode_head;
  return 2 * own * (lines + hidden + decode_head + hidden)                     // weights
         + decode_step_own_chunks * decode_step_chunk_bytes                    // cached rows
         + 4 * decode_most_rows * decode_head                                  // keys and values of the rows
         + 8 * own + 8 * own * decode_most_rows                                // norms, rows
         + 8 * (decode_ranks * lines + hidden) + 4 * decode_ranks * hidden     // sums of lines
         + 8 * decode_ranks * (decode_most_rows + 1) + 2 * decode_head         // moments, the query
         + 16 * (4 * decode_head + 24) + decode_ranks * (4 * decode_head + 8)  // sums of warps and blocks
         + decode_most_rows * decode_pitch(decode_head) + 1024;
}

}  // namespace isotope::cuda::gpu
