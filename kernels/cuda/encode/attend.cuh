#pragma once
// Queries, keys and values of a head, and attention of a cluster's rows to the rows of their texts: a warp has 16 keys at a time. Keys of two tiles of scores are interleaved so that
// a thread has four neighbouring ones, and values are stored by element, so that each thread reads what mma.sync takes in one access.
#include "encode/block.cuh"
#include "rows/teams.cuh"

namespace isotope::cuda::gpu {

template <int C, int F, int H, int T> struct encode_heads : encode_pipe<C, F, H, T> {
  using base = encode_pipe<C, F, H, T>;
  using base::a, base::s, base::t, base::lane, base::warp, base::g, base::q, base::rank, base::tile, base::groups;
  using base::base;
  static constexpr int D = encode_head, bytes = encode_head_tile_bytes, keys_at = 2 * encode_rows * D, values_at = 2 * keys_at,
                       attending = encode_attending / groups;  // warps of a group of 16 rows

  /// The queries, keys and values of the block's head of group `of` in global memory. No layer of a launch takes the place of another one, so clusters may be ahead of those that read theirs.
  __device__ unsigned char* head_tile(int layer, int of) const {
    return pointer<unsigned char>(a.heads) + (std::int64_t(layer % encode_most_layers * a.tiles * groups + of) * H + rank) * bytes;
  }
  /// The word with which a cluster's block of this head says how many tiles it has written, in all launches of so many clusters: all words are equal when one begins.
  __device__ std::uint64_t flag_of(int cluster) const { return a.flags + 4 * std::uint64_t(cluster * H + rank); }
  /// That number once this layer is among them.
  __device__ std::uint32_t passed(int layer) const { return s.passed + std::uint32_t(layer - a.base) + 1; }
  /// Reads weights of queries, keys and values.
  __device__ void prepare_qkv() {
    if (base::has_head()) base::load_lines();
  }
  /// Other clusters, of this launch or the next one, read them from global memory.
  __device__ void multiply_qkv(int layer) {
    std::uint32_t two = 0;
    const int kind = base::line_tile() / 4, column = base::line_tile() % 4;
    if (base::has_head())
      two = pointer<const std::uint32_t>(a.vectors[layer - a.base].qkv_bias)[(kind * C + rank * D + 8 * column) / 2 + q];
    base::gather();
    if (!base::has_head()) return;
    float y[groups][4];
    base::multiply_lines(y);
#pragma unroll
    for (int m = 0; m < groups; ++m) {
      const std::uint32_t low = pair_bits<bf16>(y[m][0] + low_value<bf16>(two), y[m][1] + high_value<bf16>(two)),
                          high = pair_bits<bf16>(y[m][2] + low_value<bf16>(two), y[m][3] + high_value<bf16>(two));
      unsigned char* to = s.heads[m];
      if (kind < 2) {
        auto* both = reinterpret_cast<std::uint32_t*>(to + kind * keys_at + g * 2 * D + 2 * (8 * column + 2 * q));
        both[0] = low, both[8 * D / 2] = high;
      } else {
        auto* value = reinterpret_cast<std::uint16_t*>(to + values_at) + (8 * column + 2 * q) * encode_rows + g;
        value[0] = std::uint16_t(low), value[encode_rows] = std::uint16_t(low >> 16);
        value[8] = std::uint16_t(high), value[encode_rows + 8] = std::uint16_t(high >> 16);
      }
    }
    computing_sync();
    if (a.tiles == 1) return;
    for (int m = 0; m < groups; ++m)
      if (t < bytes / 16) reinterpret_cast<uint4*>(head_tile(layer, tile * groups + m))[t] = reinterpret_cast<const uint4*>(s.heads[m])[t];
    if (a.flags == 0) return;
    computing_sync();
    if (t == 0) store_flag(flag_of(tile), passed(layer));
  }

  /// Attention of the cluster's rows by the block's head: `attended` has the results. Ends with a barrier.
  __device__ void attend_head(int layer) {
    const int m = warp / attending, at = warp % attending;
    if (m < groups) {
      const int first = s.first_group[m], end = s.end_groups[m], turns = end - first;
      if (at < turns || at == 0) attend_keys(layer, m, at, first, end);
    }
    base::template load_columns<1>();
    computing_sync();
    bool several = false;
#pragma unroll
    for (int k = 0; k < groups; ++k) {
      const int turns = s.end_groups[k] - s.first_group[k];
      if (turns <= 1) continue;
      several = true;
      combine(k, turns < attending ? turns : attending);
    }
    if (several) computing_sync();
  }

 private:
  __device__ void attend_keys(int layer, int m, int at, int first, int end) {
    const bool has = a.tiles == 1 || a.flags != 0;  // the block has the tiles of its own groups
    const unsigned char* own = has ? s.heads[m] : head_tile(layer, tile * groups + m);
    const uint4 q0 = chunk_at(own + g * 2 * D + 16 * q), q1 = chunk_at(own + (g + 8) * 2 * D + 16 * q);
    const int row = m * encode_rows + g;
    const int begins[2] = {s.first_key[row], s.first_key[row + 8]}, ends[2] = {s.end_keys[row], s.end_keys[row + 8]};
    constexpr float least = -3.0e38f;
    float top[2] = {least, least}, total[2] = {0.0f, 0.0f}, sum[4][4] = {};
#pragma unroll 1
    for (int j = first + at; j < end; j += attending) {
      const bool here = has && j / groups == tile;
      if (a.flags != 0 && !here) {  // which may be ahead by layers
        while (std::int32_t(load_flag(flag_of(j / groups)) - passed(layer)) < 0) continue;
      }
      __syncwarp();
      const unsigned char* of = here ? s.heads[j % groups] : head_tile(layer, j);
      const unsigned char* k = of + keys_at + (g / 2 * 4 + g % 2) * 2 * D + 16 * q;
      const unsigned char* v = of + values_at + g * 2 * encode_rows + 8 * q;
      const uint4 k0 = chunk_at(k), k1 = chunk_at(k + 2 * 2 * D);
      uint2 values[4];
#pragma unroll
      for (int n = 0; n < 4; ++n) values[n] = *reinterpret_cast<const uint2*>(v + n * 8 * 2 * encode_rows);
      float score[2][2][4] = {};
      multiply_chunk(q0, q1, k0, score[0][0], score[0][1]);
      multiply_chunk(q0, q1, k1, score[1][0], score[1][1]);
      float x[2][4], most[2] = {top[0], top[1]};
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int key = j * encode_rows + 4 * q + e, in = 2 * half + e % 2;
          x[half][e] = key >= begins[half] && key < ends[half] ? (score[e / 2][0][in] + score[e / 2][1][in]) * a.scale : least;
          most[half] = fmaxf(most[half], x[half][e]);
        }
#pragma unroll
      for (int apart = 1; apart < 4; apart *= 2)
#pragma unroll
        for (int half = 0; half < 2; ++half) most[half] = fmaxf(most[half], __shfl_xor_sync(all_lanes, most[half], apart));
      std::uint32_t p[4];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float kept = exp2f(top[half] - most[half]);
        top[half] = most[half];
#pragma unroll
        for (int e = 0; e < 4; ++e) x[half][e] = x[half][e] == least ? 0.0f : exp2f(x[half][e] - most[half]);
        total[half] = total[half] * kept + ((x[half][0] + x[half][1]) + (x[half][2] + x[half][3]));
#pragma unroll
        for (int n = 0; n < 4; ++n) sum[n][2 * half] *= kept, sum[n][2 * half + 1] *= kept;
        p[half] = pair_bits<bf16>(x[half][0], x[half][1]), p[2 + half] = pair_bits<bf16>(x[half][2], x[half][3]);
      }
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const std::uint32_t b[2] = {values[n].x, values[n].y};
        mma_16x8x16_bf16(sum[n], p, b);
      }
    }
#pragma unroll
    for (int apart = 1; apart < 4; apart *= 2)
#pragma unroll
      for (int half = 0; half < 2; ++half) total[half] += __shfl_xor_sync(all_lanes, total[half], apart);
    if (end - first <= 1) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float by = total[half] == 0.0f ? 0.0f : __fdividef(1.0f, total[half]);
#pragma unroll
        for (int n = 0; n < 4; ++n)
          *reinterpret_cast<std::uint32_t*>(s.attended + (row + 8 * half) * 2 * D + 2 * (8 * n + 2 * q)) =
              pair_bits<bf16>(sum[n][2 * half] * by, sum[n][2 * half + 1] * by);
      }
      return;
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int n = 0; n < 4; ++n)
        *reinterpret_cast<float2*>(&s.results[warp][g + 8 * half][8 * n + 2 * q]) = {sum[n][2 * half], sum[n][2 * half + 1]};
      if (q == 0) s.tops[warp][g + 8 * half] = {top[half], total[half]};
    }
  }
  /// The results of the warps of a group, added up in their order: a thread has two elements of a row.
  __device__ void combine(int m, int warps) {
    if (t >= encode_rows * D / 2) return;
    const int row = t / (D / 2), column = t % (D / 2) * 2, before = m * attending;
    float most = s.tops[before][row].x;
#pragma unroll
    for (int w = 1; w < attending; ++w)
      if (w < warps) most = fmaxf(most, s.tops[before + w][row].x);
    float total = 0.0f;
    float2 y{0.0f, 0.0f};
#pragma unroll
    for (int w = 0; w < attending; ++w) {
      if (w >= warps) continue;
      const float2 of = s.tops[before + w][row], two = *reinterpret_cast<const float2*>(&s.results[before + w][row][column]);
      const float by = exp2f(of.x - most);
      total = fmaf(of.y, by, total);
      y.x = fmaf(two.x, by, y.x), y.y = fmaf(two.y, by, y.y);
    }
    const float by = total == 0.0f ? 0.0f : __fdividef(1.0f, total);
    *reinterpret_cast<std::uint32_t*>(s.attended + (m * encode_rows + row) * 2 * D + 2 * column) = pair_bits<bf16>(y.x * by, y.y * by);
  }
};

}  // namespace isotope::cuda::gpu
