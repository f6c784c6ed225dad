#pragma once
// Queries, keys and values of a head, and attention of a cluster's rows to the rows of their texts: a warp has 16 keys, and no run has more rows than eight warps have keys. Keys are
// the lines that mma.sync multiplies with eight queries, values those that it multiplies with weights of keys, which a warp transposes. Keys and values of other clusters of a launch
// come as words with tags, so that nobody waits for a flag before it reads them.
#include "encode/block.cuh"

namespace isotope::cuda::gpu {

/// What a thread has of eight keys: key g, elements 8 q to 8 q + 7, and of values elements 2 g, 2 g + 1 and, from 16 on, the same, of rows 2 q and 2 q + 1.
struct encode_keys {
  uint4 key{0, 0, 0, 0};
  uint2 values[2] = {{0, 0}, {0, 0}};
};

template <int C, int F, int H, int T> struct encode_heads : encode_pipe<C, F, H, T> {
  using base = encode_pipe<C, F, H, T>;
  using base::a, base::s, base::t, base::lane, base::warp, base::g, base::q, base::rank, base::tile, base::groups, base::half, base::pair,
      base::R;
  using base::base;
  static constexpr int D = encode_head, bytes = encode_head_tile_bytes, keys_at = 2 * encode_rows * D, values_at = 2 * keys_at;
  static_assert(encode_attending * 2 * encode_rows >= encode_most_rows && encode_attending <= encode_warps);

  /// The number of the block's head of group `of` and this layer. No layer of a launch takes the place of another one, so clusters may be ahead of those that read theirs.
  __device__ std::uint64_t place(int layer, int of) const {
    return std::uint64_t((layer % encode_most_layers * a.tiles * groups + of) * H + rank);
  }
  __device__ unsigned char* head_tile(int layer, int of) const { return pointer<unsigned char>(a.heads) + place(layer, of) * bytes; }
  __device__ std::uint64_t key_tile(int layer, int of) const { return a.keys + place(layer, of) * encode_key_tile_bytes; }
  /// Where a block counts the layers that it has done, in all launches of so many clusters: all words are equal when one begins.
  __device__ std::uint32_t* count() const { return pointer<std::uint32_t>(a.counts) + tile * R + rank; }
  /// What words of this layer have as a tag. It is never 0, and another one for each number of clusters, whose words may lie in the same places.
  __device__ std::uint32_t tag_of(int layer) const {
    static_assert(encode_most_clusters <= 8);
    return (s.passed + std::uint32_t(layer - a.base) + 1) * 8 + std::uint32_t(a.tiles - 1);
  }

  /// Reads weights of queries, keys and values.
  __device__ void prepare_qkv() {
    if (base::has_head()) base::load_lines();
  }
  /// Other clusters, of this launch or the next one, read them from global memory.
  __device__ void multiply_qkv(int layer) {
    const int kind = pair / 2, line = base::first_line() % D;
    std::uint32_t two = 0;
    if (base::has_head()) two = pointer<const std::uint32_t>(a.vectors[layer - a.base].qkv_bias)[(kind * C + rank * D + line) / 2];
    base::gather();
    if (!base::has_head()) return;
    float y[groups][2];
    base::multiply_lines(y, kind == 2);
    const int of = (half ^ g) & 1;  // of two lines of values, the thread has this one
    const float first = kind == 2 && of != 0 ? high_value<bf16>(two) : low_value<bf16>(two),
                second = kind == 2 ? first : high_value<bf16>(two);
    const std::uint32_t tag = tag_of(layer);
    // Of a key 2 q + half, elements `line` and the next one; or of values an element of two rows.
    const int to_key = keys_at * kind + (2 * q + half) * 2 * D + 2 * line, to_value = values_at + (line / 2 * 4 + q) * 8 + of * 4,
              key_word = ((line / 2 % 4 / 2 * 32 + (2 * q + half) * 4 + line / 8) * 2 + line / 2 % 2) * 8,
              value_word = (((2 + line / 16) * 32 + line % 16 / 2 * 4 + q) * 2 + of) * 8;
#pragma unroll
    for (int m = 0; m < groups; ++m) {
      const std::uint32_t word = pair_bits<bf16>(y[m][0] + first, y[m][1] + second);
      *reinterpret_cast<std::uint32_t*>(s.heads[m] + (kind == 2 ? to_value : to_key)) = word;
      if (a.counts != 0 && kind > 0)
        store_word(key_tile(layer, tile * groups + m) + std::uint64_t(kind == 2 ? value_word : key_word), __uint_as_float(word), tag);
    }
    computing_sync();
    if (a.tiles == 1 || a.counts != 0) return;
    for (int m = 0; m < groups; ++m)
      if (t < bytes / 16) reinterpret_cast<uint4*>(head_tile(layer, tile * groups + m))[t] = reinterpret_cast<const uint4*>(s.heads[m])[t];
  }

  /// Attention of the cluster's rows by the block's head: `attended` has the results. Ends with a barrier.
  __device__ void attend_head(int layer) {
    const int turns = (s.end_groups - s.first_group + 1) / 2;
    if (warp < turns || warp == 0) attend_keys(layer, s.first_group + 2 * warp, s.end_groups, turns <= 1);
    base::template load_columns<1>();
    computing_sync();
    if (turns <= 1) return;
    combine(turns);
    computing_sync();
  }

 private:
  __device__ static void read(const unsigned char* of, int g, int q, encode_keys& to) {
    to.key = chunk_at(of + keys_at + g * 2 * D + 16 * q);
#pragma unroll
    for (int i = 0; i < 2; ++i) to.values[i] = *reinterpret_cast<const uint2*>(of + values_at + ((8 * i + g) * 4 + q) * 8);
  }
  /// Reads a tile of words, and returns whether all of them have the tag.
  __device__ bool arrived(std::uint64_t at, std::uint32_t tag, encode_keys& to) const {
    std::uint64_t word[4][2];
#pragma unroll
    for (int i = 0; i < 4; ++i) load_words(at + std::uint64_t(i * 512 + lane * 16), word[i]);
    bool all = true;
    std::uint32_t x[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) all = all && std::uint32_t(word[i / 2][i % 2] >> 32) == tag, x[i] = std::uint32_t(word[i / 2][i % 2]);
    to.key = {x[0], x[1], x[2], x[3]};
    to.values[0] = {x[4], x[5]}, to.values[1] = {x[6], x[7]};
    return all;
  }
  /// Keys and values of two groups of rows, of which there is no second one at the end.
  __device__ void read_keys(int layer, int j, int end, encode_keys (&to)[2]) const {
    const bool has = a.tiles == 1 || a.counts != 0;  // the block has those of its own groups
    bool comes[2];
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const bool there = j + k < end, here = has && (j + k) / groups == tile;
      comes[k] = there && !here && a.counts != 0;
      if (there && !comes[k]) read(here ? s.heads[(j + k) % groups] : head_tile(layer, j + k), g, q, to[k]);
    }
    const std::uint32_t tag = tag_of(layer);
    while (comes[0] || comes[1]) {
      bool all[2] = {true, true};
#pragma unroll
      for (int k = 0; k < 2; ++k)
        if (comes[k]) all[k] = arrived(key_tile(layer, j + k), tag, to[k]);
#pragma unroll
      for (int k = 0; k < 2; ++k)
        if (__all_sync(all_lanes, all[k])) comes[k] = false;
    }
  }
  __device__ void attend_keys(int layer, int j, int end, bool alone) {
    encode_keys k[2];
    read_keys(layer, j, end, k);
    const bool has = a.tiles == 1 || a.counts != 0;
    constexpr float least = -3.0e38f;
    float score[groups][2][4] = {};
#pragma unroll
    for (int m = 0; m < groups; ++m) {
      const unsigned char* own = has ? s.heads[m] : head_tile(layer, tile * groups + m);
      multiply_chunk(k[0].key, k[1].key, chunk_at(own + g * 2 * D + 16 * q), score[m][0], score[m][1]);
    }
    // Of rows 8 m + 2 q and the next one: the scores of keys g of both groups, the largest one, their powers of two and the sum of these. Steps of different rows follow each other, since
    // each waits for the one before of the same rows.
    float x[groups][2][2], top[groups][2], total[groups][2];
#pragma unroll
    for (int m = 0; m < groups; ++m)
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int row = m * encode_rows + 2 * q + r, begins = s.first_key[row], ends = s.end_keys[row];
#pragma unroll
        for (int of = 0; of < 2; ++of) {
          const int key = (j + of) * encode_rows + g;
          x[m][r][of] = key >= begins && key < ends ? (score[m][0][2 * of + r] + score[m][1][2 * of + r]) * a.scale : least;
        }
        top[m][r] = fmaxf(x[m][r][0], x[m][r][1]);
      }
#pragma unroll
    for (int apart = 4; apart < 32; apart *= 2)
#pragma unroll
      for (int m = 0; m < groups; ++m)
#pragma unroll
        for (int r = 0; r < 2; ++r) top[m][r] = fmaxf(top[m][r], __shfl_xor_sync(all_lanes, top[m][r], apart));
    std::uint32_t p[groups][2];
#pragma unroll
    for (int m = 0; m < groups; ++m) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
#pragma unroll
        for (int of = 0; of < 2; ++of) x[m][r][of] = x[m][r][of] == least ? 0.0f : exp2f(x[m][r][of] - top[m][r]);
        total[m][r] = x[m][r][0] + x[m][r][1];
      }
#pragma unroll
      for (int of = 0; of < 2; ++of) p[m][of] = transposed_matrix(pair_bits<bf16>(x[m][0][of], x[m][1][of]));
    }
    float y[groups][2][4] = {};
#pragma unroll
    for (int m = 0; m < groups; ++m)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const std::uint32_t values[4] = {k[0].values[i].x, k[0].values[i].y, k[1].values[i].x, k[1].values[i].y};
        mma_16x8x16_bf16(y[m][i], values, p[m]);
      }
#pragma unroll
    for (int apart = 4; apart < 32; apart *= 2)
#pragma unroll
      for (int m = 0; m < groups; ++m)
#pragma unroll
        for (int r = 0; r < 2; ++r) total[m][r] += __shfl_xor_sync(all_lanes, total[m][r], apart);
#pragma unroll
    for (int m = 0; m < groups; ++m)
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int row = m * encode_rows + 2 * q + r;
        const float by = total[m][r] == 0.0f ? 0.0f : __fdividef(1.0f, total[m][r]);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          if (alone)
            *reinterpret_cast<std::uint32_t*>(s.attended + row * 2 * D + 2 * (16 * i + 2 * g)) =
                pair_bits<bf16>(y[m][i][r] * by, y[m][i][2 + r] * by);
          else *reinterpret_cast<float2*>(&s.results[warp][row][16 * i + 2 * g]) = {y[m][i][r], y[m][i][2 + r]};
        }
        if (!alone && g == 0) s.tops[warp][row] = {top[m][r], total[m][r]};
      }
  }
  /// The results of the warps, added up in their order: a thread has two elements of a row. Those of warps that had no keys are read, too, so that no access waits for another one.
  __device__ void combine(int warps) {
#pragma unroll
    for (int at = t; at < T * D / 2; at += 32 * encode_warps) {
      const int row = at / (D / 2), column = at % (D / 2) * 2;
      constexpr int all = encode_attending;
      float2 of[all], two[all];
#pragma unroll
      for (int w = 0; w < all; ++w) of[w] = s.tops[w][row], two[w] = *reinterpret_cast<const float2*>(&s.results[w][row][column]);
      float most = of[0].x;
#pragma unroll
      for (int w = 1; w < all; ++w) most = w < warps ? fmaxf(most, of[w].x) : most;
      float total = 0.0f;
      float2 y{0.0f, 0.0f};
#pragma unroll
      for (int w = 0; w < all; ++w) {
        const float by = exp2f(of[w].x - most);
        total = w < warps ? fmaf(of[w].y, by, total) : total;
        y.x = w < warps ? fmaf(two[w].x, by, y.x) : y.x, y.y = w < warps ? fmaf(two[w].y, by, y.y) : y.y;
      }
      const float by = total == 0.0f ? 0.0f : __fdividef(1.0f, total);
      *reinterpret_cast<std::uint32_t*>(s.attended + row * 2 * D + 2 * column) = pair_bits<bf16>(y.x * by, y.y * by);
    }
  }
};

}  // namespace isotope::cuda::gpu
