#pragma once
// Rows of the encoder that a block owns: it adds up their parts, normalises them and sends them to all blocks of its cluster. A thread has one column.
#include "device/packed_rows.cuh"
#include "encode/attend.cuh"
#include "rows/teams.cuh"

namespace isotope::cuda::gpu {

/// 0.5 x (1 + erf(x / sqrt(2)))
__device__ inline float encode_gelu(float x) { return 0.5f * x * (1.0f + erff(x * 0.70710678f)); }

template <int C, int F, int H, int R> struct encode_block : encode_heads<C, F, H, R> {
  using base = encode_heads<C, F, H, R>;
  using memory = typename base::memory;
  using base::a, base::s, base::t, base::lane, base::warp, base::g, base::q, base::rank, base::tile, base::in, base::own;
  using base::base;

  __device__ static float value_at(std::uint64_t vector, int i) { return bf16_value(pointer<const std::uint16_t>(vector)[i]); }
  __device__ static float element(std::uint64_t table, std::int32_t id, std::int32_t count, int column) {
    return id >= 0 && id < count ? value_at(table + 2 * std::uint64_t(id) * C, column) : __uint_as_float(0x7fffffffu);
  }

  /// Normalises the block's rows, of which the thread has a column, sends them to all blocks, and waits for those of all.
  __device__ void normalise(const float (&x)[own], float weight, float bias, float epsilon, int to) {
    const int count = base::own_count();
#pragma unroll
    for (int i = 0; i < own; ++i) {
      const float pivot = __shfl_sync(all_lanes, x[i], 0), d = x[i] - pivot;
      float sum[2] = {d, d * d};
#pragma unroll
      for (int apart = 16; apart > 0; apart /= 2)
#pragma unroll
        for (int k = 0; k < 2; ++k) sum[k] += __shfl_xor_sync(all_lanes, sum[k], apart);
      const float mean = sum[0] * (1.0f / 32);
      if (lane == 0) s.moments[i][warp] = {pivot + mean, fmaxf(sum[1] - sum[0] * mean, 0.0f)};
    }
    computing_sync();
#pragma unroll
    for (int i = 0; i < own; ++i) {
      if (i >= count) continue;
      float2 m[encode_warps];
#pragma unroll
      for (int w = 0; w < encode_warps; ++w) m[w] = s.moments[i][w];
      const float pivot = m[0].x;
      float sum = 0.0f, square = 0.0f, within = 0.0f;
#pragma unroll
      for (int w = 0; w < encode_warps; ++w) {
        const float d = m[w].x - pivot;
        sum += d;
        square = fmaf(d, d, square);
        within += m[w].y;
      }
      const float mean = sum * (1.0f / encode_warps), variance = (within + 32.0f * fmaxf(square - sum * mean, 0.0f)) * (1.0f / C);
      const std::uint16_t y = bf16_bits(fmaf((x[i] - pivot - mean) * rsqrtf(variance + epsilon), weight, bias));
      s.row[i][t] = y;
      const int row = tile * encode_rows + rank + R * i;
      if (a.x != 0 && row < a.N) pointer<std::uint16_t>(a.x)[std::int64_t(row) * C + t] = y;
    }
    computing_sync();
    constexpr int chunks = C / 8;
    for (int i = t; i < chunks * R * count; i += 32 * encode_warps) {
      const int chunk = i % chunks, at = i / chunks, which = at / R;
      const float4 eight = reinterpret_cast<const float4*>(s.row[which])[chunk];
      const auto* there = reinterpret_cast<const float*>(s.x[to] + (rank + R * which) * base::pitch + 16 * chunk);
      send(there, shared_address(&s.gathered[to]), std::uint32_t(at % R), eight);
    }
    wait_for_sent(shared_address(&s.gathered[to]), std::uint32_t(base::gathers[to]++) & 1);
    if (t == 0) barrier_expect(shared_address(&s.gathered[to]), base::gathered_bytes);
    in = to;
  }
  /// Adds up the parts of the block's rows from `sources` blocks, the bias and the rows before, and normalises the sums.
  __device__ void add_and_normalise(int sources, std::uint64_t bias_at, std::uint64_t weight_at, std::uint64_t norm_bias_at) {
    const int count = base::own_count();
    const float bias = value_at(bias_at, t), weight = value_at(weight_at, t), norm_bias = value_at(norm_bias_at, t);
    float x[own] = {};
#pragma unroll
    for (int i = 0; i < own; ++i)
      if (i < count) x[i] = bf16_value(reinterpret_cast<const std::uint16_t*>(s.x[in] + (rank + R * i) * base::pitch)[t]);
    wait_for_sent(shared_address(&s.summed), std::uint32_t(base::sums++) & 1);
    if (t == 0) barrier_expect(shared_address(&s.summed), base::bytes_of_parts(base::sums % 2 == 0 ? base::head_blocks : R));
#pragma unroll
    for (int i = 0; i < own; ++i) {
      if (i >= count) continue;
      float sum = s.parts[0][i][t];
#pragma unroll
      for (int r = 1; r < R; ++r)
        if (r < sources) sum += s.parts[r][i][t];
      x[i] += sum + bias;
    }
    normalise(x, weight, norm_bias, a.epsilon, 1 - in);
  }

  /// Where the texts of the tile's rows begin and end, by the last warp.
  __device__ void find_texts() {
    if (warp != encode_warps - 1) return;
    for (int b = lane; b <= a.texts; b += 32) s.starts[b] = std::int32_t(start_of(a.starts, b, a.N));
    __syncwarp();
    if (lane >= encode_rows) return;
    const int row = tile * encode_rows + lane;
    int low = -1, high = a.texts;  // low begins at or before the row, high behind it
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      if (s.starts[middle] <= row) low = middle;
      else high = middle;
    }
    const bool inside = row < a.N && low >= 0 && row < s.starts[low + 1];
    s.first_key[lane] = inside ? s.starts[low] : 0;
    s.end_keys[lane] = inside ? s.starts[low + 1] : 0;
  }
  /// Looks up the block's rows in the tables and normalises them.
  __device__ void embed() {
    const float kind = value_at(a.kinds, t), weight = value_at(a.embedding_weight, t), bias = value_at(a.embedding_bias, t);
    float x[own] = {};
#pragma unroll
    for (int i = 0; i < own; ++i) {
      const int row = tile * encode_rows + rank + R * i;
      if (i >= base::own_count() || row >= a.N) continue;
      x[i] = element(a.words, pointer<const std::int32_t>(a.word_ids)[row], a.word_count, t) + kind +
             element(a.places, pointer<const std::int32_t>(a.place_ids)[row], a.place_count, t);
    }
    find_texts();
    cluster_wait();
    normalise(x, weight, bias, a.embedding_epsilon, 0);
  }
  /// Goes on where another launch has ended: behind a layer with all rows, or behind queries, keys and values with the block's rows.
  __device__ void resume() {
    find_texts();
    constexpr int chunks = C / 8;
    const bool all = a.first % 2 == 0;
    for (int i = t; i < chunks * encode_rows; i += 32 * encode_warps) {
      const int at = i / chunks, row = tile * encode_rows + at, chunk = i % chunks;
      if (all || at % R == rank)
        *reinterpret_cast<uint4*>(s.x[0] + at * base::pitch + 16 * chunk) =
            row < a.N ? pointer<const uint4>(a.x)[std::int64_t(row) * chunks + chunk] : uint4{0, 0, 0, 0};
    }
    cluster_wait();
    computing_sync();
  }

  /// Attention of the block's heads, and the rows behind it.
  __device__ void attend(int layer) {
    const encode_vectors& v = a.vectors[layer - a.base];
    if (rank < base::head_blocks) {
      float sums_of[4][4] = {};
#pragma unroll 1
      for (int i = 0; rank + R * i < H; ++i) {
        base::attend_head(i, layer);
        base::multiply_columns(s.attended, 2 * encode_head, sums_of);
        if (rank + R * (i + 1) < H) computing_sync();
      }
      base::send_parts(sums_of);
    }
    add_and_normalise(base::head_blocks, v.projection_bias, v.norm_weight, v.norm_bias);
  }
  /// The MLP, and the rows behind it.
  __device__ void multiply_mlp(int layer) {
    const encode_vectors& v = a.vectors[layer - a.base];
    constexpr int tiles = base::hidden / 8, hidden_pitch = memory::hidden_pitch;
#pragma unroll
    for (int from = 0; from < tiles; from += encode_warps) {
      const int column = from + warp, count = tiles - from < encode_warps ? (tiles - from) / 4 : encode_warps / 4;
      if (column < tiles) {
        const std::uint32_t two = pointer<const std::uint32_t>(v.up_bias)[(rank * base::hidden + 8 * column) / 2 + q];
        float y[4];
        base::multiply_lines(base::piece + warp / 4, column % 4, y);
#pragma unroll
        for (int half = 0; half < 2; ++half)
          *reinterpret_cast<std::uint32_t*>(s.hidden + (g + 8 * half) * hidden_pitch + 2 * (8 * column + 2 * q)) =
              pair_bits<bf16>(encode_gelu(y[2 * half] + low_value<bf16>(two)), encode_gelu(y[2 * half + 1] + high_value<bf16>(two)));
      }
      base::release(count);
    }
    computing_sync();
    float sums_of[4][4] = {};
#pragma unroll
    for (int i = 0; i < base::pieces; ++i) base::multiply_columns(s.hidden + 64 * i, hidden_pitch, sums_of);
    base::send_parts(sums_of);
    add_and_normalise(R, v.down_bias, v.last_norm_weight, v.last_norm_bias);
  }

  /// The mean of a text's rows, or its first row, divided by its norm. `x`: the rows, `row_bytes` apart.
  __device__ void pool(int text, const unsigned char* x, int row_bytes) {
    const int first = s.starts[text], last = s.starts[text + 1], count = last <= first ? 0 : a.first_row != 0 ? 1 : last - first;
    float y = 0.0f;
#pragma unroll 8
    for (int n = first; n < first + count; ++n) y += bf16_value(reinterpret_cast<const std::uint16_t*>(x + n * row_bytes)[t]);
    y = count == 0 ? 0.0f : y * (1.0f / float(count));
    if (a.normalise != 0) {
      double square = double(y) * double(y);
#pragma unroll
      for (int apart = 16; apart > 0; apart /= 2) square += __shfl_xor_sync(all_lanes, square, apart);
      if (lane == 0) s.squares[warp] = square;
      computing_sync();
      double sum = 0;
#pragma unroll
      for (int w = 0; w < encode_warps; ++w) sum += s.squares[w];
      const double norm = sqrt(sum), by = norm < a.least_norm ? a.least_norm : norm;
      y = float(y / by);
      computing_sync();
    }
    pointer<std::uint16_t>(a.y)[std::int64_t(text) * C + t] = bf16_bits(y);
  }
  /// The means of all texts. With several tiles the block that ends last computes them; it also sets the counters to zeros.
  __device__ void finish() {
    if (a.counters != 0) {
      computing_sync();
      auto* counters = pointer<std::uint32_t>(a.counters);
      const int count = a.stages / 2 * H;
      if (t == 0) s.last = add_one(counters + count) == gridDim.x - 1;
      computing_sync();
      if (s.last == 0) return;
      for (int i = t; i <= count; i += 32 * encode_warps) counters[i] = 0;
      if (a.y != 0)
        for (int b = 0; b < a.texts; ++b) pool(b, pointer<const unsigned char>(a.x), 2 * C);
    } else if (a.y != 0) {
      for (int b = rank; b < a.texts; b += R) pool(b, s.x[in], base::pitch);
    }
  }
};

}  // namespace isotope::cuda::gpu
