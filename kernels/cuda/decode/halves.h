#pragma once
// The arguments of native/decode_hopper.cu; included by host and device code.
#include <cstdint>

namespace isotope::cuda::gpu {

/// Blocks of a cluster, elements of a head, rows (tokens) of a step, parts of a sum of rows, and positions of a cache, at most.
inline constexpr int decode_ranks = 8, decode_head = 64, decode_most_rows = 8, decode_most_parts = 16, decode_most_positions = 1024;
/// Clusters that divide the hidden values of an MLP.
inline constexpr int decode_groups = 16;
/// Threads of a block of a half, of C columns, and of a block of the logits.
constexpr int decode_threads(int C) { return C / 2; }
inline constexpr int decode_logits_threads = 256;
/// Rows of the logits' weights in shared memory: pieces of so many elements, and how many of eight rows a warp has.
inline constexpr int decode_piece = 384, decode_stages = 3;
/// Bytes between rows of weights of K elements in shared memory: rows one after the other start 64 bytes apart in the banks, so that the eight threads of a turn,
/// which read 64 bytes of two rows, meet no conflict.
constexpr int decode_pitch(int K) { return 2 * K + 64; }
/// Shared memory of a block of each kernel of a single row, at most, of C columns, and of that of the logits of `rows` rows.
constexpr int decode_row_bytes(int C, int rows) { return 4 * C * rows + 4 * C + 8 * rows + 256; }
/// Of a product of a single row with `lines` lines, which the blocks of a cluster have together.
constexpr int decode_line_bytes(int C, int lines) {
  const int own = C / decode_ranks;
  return 2 * own * lines + 4 * lines * decode_ranks * 3 + 12 * own + 8 * decode_ranks + 256;
}
constexpr int decode_attention_bytes(int C) {
  return decode_line_bytes(C, 3 * decode_head) + C / decode_ranks * decode_pitch(decode_head) +
         4 * decode_head * (4 + C / 64 + decode_ranks) + 8 * (C / 64 + decode_ranks) + 256;
}
constexpr int decode_mlp_bytes(int C) {
  const int hidden = 4 * C / decode_groups;
  return decode_line_bytes(C, hidden) + C / decode_ranks * decode_pitch(hidden) + 2 * hidden + 256;
}
constexpr int decode_logits_bytes(int C, int rows) {
  return decode_logits_threads / 32 * decode_stages * 8 * decode_pitch(decode_piece) + rows * decode_pitch(C) + decode_row_bytes(C, rows) +
         256;
}

/// A residual row of each token, as the launches of a step pass it on: the sum of `parts` rows, which are added up in their order; or, of the first one, the
/// sum of two rows of tables, rounded to bf16, or rows that are there.
struct decode_rows {
  std::uint64_t from;                                // (parts, N, C) f32; 0: see x
  std::uint64_t x;                                   // (N, C) bf16; 0: see the tables
  std::uint64_t words, places, word_ids, place_ids;  // (word_count, C), (place_count, C) bf16, (N), (N) i32
  std::uint64_t norm_weight, norm_bias;              // (C) bf16
  std::int32_t word_count, place_count;
  std::int32_t parts, N;
  float epsilon;
};
/// to[h] = the part of head h of x + projection(attention(weight norm(x) + bias)) + projection_bias; part 0 has x and the bias.
struct decode_attention {
  decode_rows rows;
  std::uint64_t weight, bias;                 // (3 C, C), (3 C) bf16
  std::uint64_t projection, projection_bias;  // (C, C), (C) bf16
  std::uint64_t keys, values;                 // (B, H, T, D) bf16, to which the keys and values of the rows are added
  std::uint64_t sequence, position;           // (N) i32
  std::uint64_t to;                           // (H, N, C) f32
  std::int32_t B, T;
  float scale;  // of scores, times log2(e)
};
/// to[p] = the part of hidden values 4 C p / groups and on of x + projection(gelu(weight norm(x) + bias)) + projection_bias; part 0 has x and the bias.
struct decode_mlp {
  decode_rows rows;
  std::uint64_t weight, bias;                 // (4 C, C), (4 C) bf16
  std::uint64_t projection, projection_bias;  // (C, 4 C), (C) bf16
  std::uint64_t to;                           // (groups, N, C) f32
};
/// y = weight norm(x)
struct decode_logits {
  decode_rows rows;
  std::uint64_t weight;  // (V, C) bf16
  std::uint64_t y;       // (N, V) bf16
  std::int32_t V;
};

}  // namespace isotope::cuda::gpu
