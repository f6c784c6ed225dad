#pragma once
// The arguments of native/encode_hopper.cu; included by host and device code.
#include <cstdint>

#include "../device/hopper.h"

namespace isotope::cuda::gpu {

/// Rows that are multiplied together, elements of a head; layers of a launch, rows, texts and clusters of a run, at most; blocks of a cluster.
inline constexpr int encode_rows = 8, encode_head = 32, encode_most_layers = 6, encode_most_rows = 128, encode_most_texts = 64,
                     encode_most_clusters = 8, encode_ranks = 16;
/// Warps that compute, those of attention, and threads of a block: a warpgroup more asks for weights, so that the others have its registers. Half of a row belongs to a block, and three warps
/// add up its parts and normalise it.
inline constexpr int encode_warps = 12, encode_attending = 8, encode_threads = 32 * encode_warps + 128, encode_half_warps = 3;
/// Registers of a thread that computes, and of one that asks for weights: 512 for four threads.
inline constexpr int encode_registers = 160, encode_other_registers = 32;
/// Weights come in pieces of 32 lines of C elements, or of C lines of 32 elements. So many of them are multiplied together: 96 lines, of which two warps have 16, half of the
/// elements each.
inline constexpr int encode_lines = 32, encode_group = 3;
constexpr int encode_piece_bytes(int C) { return 2 * encode_lines * C; }
/// Pieces of weights in shared memory, where a cluster has T rows.
constexpr int encode_slots(int T) { return T == 16 ? 7 : 6; }
/// Bytes between rows of K elements in shared memory: an odd number of 64 bytes, so that eight threads that read 64 bytes of two rows meet no conflict.
constexpr int encode_pitch(int K) { return 2 * K % 128 == 64 ? 2 * K : 2 * K + 64; }
/// Halves of rows that a block of a cluster of T rows owns.
constexpr int encode_own_halves(int T) { return 2 * T / encode_ranks; }
/// Queries, keys and values of eight rows of one head, in bf16: (rows, head), (rows, head), (head / 2, rows / 2, 2, 2), the last axis for rows. And keys and values as words of two of
/// these numbers and a tag: what a thread of attention reads lies in four vectors of two words, (4, 32, 2).
inline constexpr int encode_head_tile_bytes = 3 * 2 * encode_rows * encode_head, encode_key_tile_bytes = 4 * 32 * 16;
/// Results of the warps of attention, padded, in f32.
inline constexpr int encode_result_pitch = encode_head + 4;

/// Shared memory of a block, where a cluster has T rows.
constexpr int encode_bytes(int C, int F, int T) {
  const int results = 4 * encode_attending * T * encode_result_pitch,
            hidden = T * encode_pitch(F / encode_ranks) + T / encode_rows * 256 * encode_warps;
  return encode_slots(T) * encode_piece_bytes(C) + T * encode_pitch(C) + encode_ranks * encode_own_halves(T) * C +
         (results > hidden ? results : hidden) + 2 * T * encode_head + T / encode_rows * encode_head_tile_bytes + 8 * encode_attending * T +
         1792;
}

/// The weights of a layer: as boxes, and vectors of bf16.
struct encode_layer {
  tensor_map_bytes qkv, projection, up, down;  // (3 C, C), (C, C), (F, C), (C, F)
};
struct encode_vectors {
  std::uint64_t qkv_bias, projection_bias, norm_weight, norm_bias;     // (3 C), (C), (C), (C): of attention
  std::uint64_t up_bias, down_bias, last_norm_weight, last_norm_bias;  // (F), (C), (C), (C): of the MLP
};
/// The layers of a post-norm encoder on packed texts. A launch does stages [first, end): stage 2 l has the queries, keys and values of layer l, stage 2 l + 1 the rest of it.
/// Before stage 0 rows are looked up and normalised. Behind the last one the mean of each text is written to y, if it is not 0.
struct encode_arguments {
  encode_layer layers[encode_most_layers];
  encode_vectors vectors[encode_most_layers];
  std::uint64_t words, places, kinds;              // (word_count, C), (place_count, C), (C) bf16: what a row is the sum of
  std::uint64_t word_ids, place_ids;               // (N) i32
  std::uint64_t embedding_weight, embedding_bias;  // (C) bf16: of the first norm
  std::uint64_t starts;                            // (texts + 1) i32
  std::uint64_t kept_starts;                       // where the first launch copies `starts` for later ones; 0: there are none
  std::uint64_t x;                                 // (N, C) bf16: rows behind each layer; 0: not stored
  std::uint64_t
      heads;  // (encode_most_layers, groups of 8 rows, H, head tile) bf16: what clusters pass to each other from launch to launch, of layer l at l % encode_most_layers
  std::uint64_t
      keys;  // (encode_most_layers, groups of 8 rows, H, key tile): the same as words with tags, where clusters of a launch wait for each other
  std::uint64_t
      counts;  // (clusters, ranks) u32: layers that a block has done with so many clusters, from which tags follow; 0: clusters wait from launch to launch
  std::uint64_t sums;  // (texts, clusters, C): words with tags, the sums of a text's rows in each cluster but the first one that has any
  std::uint64_t y,
      y_host;         // (texts, C) bf16: the means of the rows of texts; 0: not computed. The second is in the host's memory; 0: nowhere
  double least_norm;  // what y is divided by at least
  std::int32_t word_count, place_count, N, texts, tiles, first, end, stages;  // tiles: clusters; stages: of all layers
  std::int32_t base, rows;                                                    // the layer that is first in `layers`; rows of a cluster
  std::int32_t first_row;                                                     // takes the first row of each text in place of the mean
  std::int32_t normalise;                                                     // divides y by its norm
  float scale;                                                                // of scores, times log2(e)
  float epsilon, embedding_epsilon;
};

}  // namespace isotope::cuda::gpu
