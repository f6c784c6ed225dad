#pragma once
// Rows of the encoder that a block owns: a warp adds up the parts of a row and normalises it, and its team sends it to all blocks of the cluster. A thread of that warp has three times
// four neighbouring columns.
#include "device/packed_rows.cuh"
#include "encode/attend.cuh"
#include "rows/teams.cuh"

namespace isotope::cuda::gpu {

/// 0.5 x (1 + erf(x / sqrt(2)))
__device__ inline float encode_gelu(float x) { return 0.5f * x * (1.0f + erff(x * 0.70710678f)); }

/// Numbers of a row that a thread has.
template <int C> struct encode_columns {
  static constexpr int count = C / 32;
  float x[count];
  /// The first column of the thread's i-th four.
  __device__ static int at(int i) { return 128 * i + 4 * (int(threadIdx.x) % 32); }
  __device__ static void widen(const uint2& u, float* to) {
    to[0] = low_value<bf16>(u.x), to[1] = high_value<bf16>(u.x), to[2] = low_value<bf16>(u.y), to[3] = high_value<bf16>(u.y);
  }
  /// Of a row of bf16 in memory.
  __device__ static encode_columns of(const void* row) {
    encode_columns r;
#pragma unroll
    for (int i = 0; i < count / 4; ++i)
      widen(*reinterpret_cast<const uint2*>(static_cast<const unsigned char*>(row) + 2 * at(i)), r.x + 4 * i);
    return r;
  }
  __device__ static encode_columns in_table(std::uint64_t table, std::int32_t id, std::int32_t rows) {
    if (id >= 0 && id < rows) return of(pointer<const void>(table + 2 * std::uint64_t(id) * C));
    encode_columns r;
#pragma unroll
    for (int i = 0; i < count; ++i) r.x[i] = __uint_as_float(0x7fffffffu);
    return r;
  }
  __device__ void add(const encode_columns& y) {
#pragma unroll
    for (int i = 0; i < count; ++i) x[i] += y.x[i];
  }
};

template <int C, int F, int H, int R> struct encode_block : encode_heads<C, F, H, R> {
  using base = encode_heads<C, F, H, R>;
  using memory = typename base::memory;
  using columns = encode_columns<C>;
  using base::a, base::s, base::t, base::lane, base::warp, base::g, base::q, base::rank, base::tile, base::in, base::own;
  using base::base;
  static_assert(C % 128 == 0);

  /// Which of the block's rows the warp's team has, the row in the tile, and that of the tensor; the first warp of a team normalises the row.
  __device__ int mine() const { return warp / encode_team; }
  __device__ bool sends() const { return warp < encode_team * own; }
  __device__ bool normalises() const { return sends() && warp % encode_team == 0; }
  __device__ int row() const { return rank + R * mine(); }
  __device__ int tensor_row() const { return tile * encode_rows + row(); }

  /// Normalises a row, by a warp: s.row has it, rounded, and, if it is behind a layer, so has a.x.
  __device__ void normalise(const columns& x, const columns& weight, const columns& bias, float epsilon, bool behind_layer) {
    const float pivot = __shfl_sync(all_lanes, x.x[0], 0);
    float sum[2][2] = {};
#pragma unroll
    for (int i = 0; i < columns::count; ++i) {
      const float d = x.x[i] - pivot;
      sum[0][i % 2] += d;
      sum[1][i % 2] = fmaf(d, d, sum[1][i % 2]);
    }
    float all[2] = {sum[0][0] + sum[0][1], sum[1][0] + sum[1][1]};
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2)
#pragma unroll
      for (int k = 0; k < 2; ++k) all[k] += __shfl_xor_sync(all_lanes, all[k], apart);
    const float mean = all[0] * (1.0f / C), variance = fmaxf(all[1] * (1.0f / C) - mean * mean, 0.0f), by = rsqrtf(variance + epsilon);
    const bool stored = behind_layer && a.x != 0 && tensor_row() < a.N;
#pragma unroll
    for (int i = 0; i < columns::count / 4; ++i) {
      float y[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) y[k] = fmaf((x.x[4 * i + k] - pivot - mean) * by, weight.x[4 * i + k], bias.x[4 * i + k]);
      const uint2 four{pair_bits<bf16>(y[0], y[1]), pair_bits<bf16>(y[2], y[3])};
      *reinterpret_cast<uint2*>(&s.row[mine()][columns::at(i)]) = four;
      if (stored) *reinterpret_cast<uint2*>(pointer<std::uint16_t>(a.x) + std::int64_t(tensor_row()) * C + columns::at(i)) = four;
    }
  }
  /// Sends the team's row to all blocks, as rows `to`, behind what its first warp has written.
  __device__ void send_row(int to) {
    constexpr int chunks = C / 8, threads = 32 * encode_team;
    static_assert(chunks * R % threads == 0);
    if (sends()) {
      group_sync<encode_team>(2 + encode_warps / 2 + mine());
#pragma unroll
      for (int i = 0; i < chunks * R / threads; ++i) {
        const int k = t % threads + threads * i, chunk = k % chunks;
        const float4 eight = reinterpret_cast<const float4*>(s.row[mine()])[chunk];
        send(reinterpret_cast<const float*>(s.x[to] + row() * base::pitch + 16 * chunk), shared_address(&s.gathered[to]),
             std::uint32_t(k / chunks), eight);
      }
    }
    in = to;
    base::coming = true;
  }
  /// Adds up the parts of the block's rows from `sources` blocks, the bias and the rows before, and normalises the sums. Those behind attention are not stored: blocks without a head
  /// may not have read the rows of the launch before.
  __device__ void add_and_normalise(int sources, bool behind_layer, std::uint64_t bias_at, std::uint64_t weight_at,
                                    std::uint64_t norm_bias_at) {
    if (normalises()) {
      const columns bias = columns::of(pointer<const void>(bias_at)), weight = columns::of(pointer<const void>(weight_at)),
                    norm_bias = columns::of(pointer<const void>(norm_bias_at));
      columns x = columns::of(s.x[in] + row() * base::pitch);
      x.add(bias);
      wait_for_sent(shared_address(&s.summed), std::uint32_t(base::sums) & 1);
      columns sum;
#pragma unroll
      for (int r = 0; r < R; ++r) {
        if (r >= sources) continue;
#pragma unroll
        for (int i = 0; i < columns::count / 4; ++i) {
          const float4 part = *reinterpret_cast<const float4*>(&s.parts[r][mine()][columns::at(i)]);
          const float four[4] = {part.x, part.y, part.z, part.w};
#pragma unroll
          for (int k = 0; k < 4; ++k) sum.x[4 * i + k] = r == 0 ? four[k] : sum.x[4 * i + k] + four[k];
        }
      }
      x.add(sum);
      if (t == 0) barrier_expect(shared_address(&s.summed), base::bytes_of_parts(base::sums % 2 == 0 ? R : base::head_blocks));
      normalise(x, weight, norm_bias, a.epsilon, behind_layer);
    }
    ++base::sums;
    send_row(1 - in);
  }

  /// Where the texts of the tile's rows begin and end, by the last warp.
  __device__ void find_texts() {
    if (warp != encode_warps - 1) return;
    for (int b = lane; b <= a.texts; b += 32) s.starts[b] = std::int32_t(start_of(a.starts, b, a.N));
    __syncwarp();
    const int r = lane % encode_rows, row = tile * encode_rows + r;
    int low = -1, high = a.texts;  // low begins at or before the row, high behind it
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      if (s.starts[middle] <= row) low = middle;
      else high = middle;
    }
    const bool inside = row < a.N && low >= 0 && row < s.starts[low + 1];
    const int first = inside ? s.starts[low] : 0, end = inside ? s.starts[low + 1] : 0;
    int least = inside ? first : a.N, most = end;
#pragma unroll
    for (int apart = 8; apart > 0; apart /= 2) {
      const int other = __shfl_xor_sync(all_lanes, least, apart), another = __shfl_xor_sync(all_lanes, most, apart);
      least = other < least ? other : least;
      most = another > most ? another : most;
    }
    if (lane < encode_rows) s.first_key[r] = first, s.end_keys[r] = end;
    if (lane == 0) s.first_tile = least / encode_rows, s.end_tiles = most == 0 ? s.first_tile : (most - 1) / encode_rows + 1;
  }
  /// Looks up the block's rows in the tables and normalises them.
  __device__ void embed() {
    find_texts();
    if (normalises()) {
      const int row = tensor_row(), word = row < a.N ? pointer<const std::int32_t>(a.word_ids)[row] : -1,
                place = row < a.N ? pointer<const std::int32_t>(a.place_ids)[row] : -1;
      const columns kind = columns::of(pointer<const void>(a.kinds)), weight = columns::of(pointer<const void>(a.embedding_weight)),
                    bias = columns::of(pointer<const void>(a.embedding_bias));
      columns x = kind;
      if (row < a.N) {
        x = columns::in_table(a.words, word, a.word_count);
        x.add(kind);
        x.add(columns::in_table(a.places, place, a.place_count));
      }
      normalise(x, weight, bias, a.embedding_epsilon, true);
    }
    cluster_wait();
    send_row(0);
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
    base::gather();
    if (rank < base::head_blocks) {
      float sums_of[4][4] = {};
#pragma unroll 1
      for (int i = 0; rank + R * i < H; ++i) {
        if (i > 0) computing_sync();
        base::template load_columns<1>();
        base::attend_head(i, layer);
        base::template multiply_columns<1>(s.attended, 2 * encode_head, sums_of);
      }
      base::send_parts(sums_of);
    }
    add_and_normalise(base::head_blocks, false, v.projection_bias, v.norm_weight, v.norm_bias);
  }
  /// The MLP, and the rows behind it.
  __device__ void multiply_mlp(int layer) {
    const encode_vectors& v = a.vectors[layer - a.base];
#pragma unroll
    for (int from = 0; from < base::pieces; from += encode_group) {
      const int column = 8 * (4 * from + base::line_tile()) + 2 * q;
      const std::uint32_t two = *pointer<const std::uint32_t>(v.up_bias + 2 * std::uint64_t(rank * base::hidden + column));
      base::load_lines();
      base::gather();
      if (from > 0) group_sync<2>(2 + base::pair);  // the sums of the group before have been read
      float y[4];
      base::multiply_lines(y);
#pragma unroll
      for (int h = 0; h < 2; ++h)
        *reinterpret_cast<std::uint32_t*>(s.p.hidden + (g + 8 * h) * memory::hidden_pitch + 2 * column) =
            pair_bits<bf16>(encode_gelu(y[2 * h] + low_value<bf16>(two)), encode_gelu(y[2 * h + 1] + high_value<bf16>(two)));
    }
    float sums_of[4][4] = {};
#pragma unroll
    for (int from = 0; from < base::pieces; from += encode_group) {
      base::template load_columns<encode_group>();
      if (from == 0) computing_sync();
      base::template multiply_columns<encode_group>(s.p.hidden + 64 * from, memory::hidden_pitch, sums_of);
    }
    base::send_parts(sums_of);
    add_and_normalise(R, true, v.down_bias, v.last_norm_weight, v.last_norm_bias);
  }

  /// The mean of each text's rows, or its first row, divided by its norm: a thread has a column.
  __device__ void finish() {
    if (a.y == 0) return;
    for (int b = rank; b < a.texts; b += R) {
      const int first = s.starts[b], last = s.starts[b + 1], count = last <= first ? 0 : a.first_row != 0 ? 1 : last - first;
      float y = 0.0f;
      for (int n = first; n < first + count; ++n) y += bf16_value(reinterpret_cast<const std::uint16_t*>(s.x[in] + n * base::pitch)[t]);
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
      pointer<std::uint16_t>(a.y)[std::int64_t(b) * C + t] = bf16_bits(y);
    }
  }
};

}  // namespace isotope::cuda::gpu
