#pragma once
// Rows of the encoder that a block owns: three warps of its team add up the parts of a row and normalise it, and the team sends it to all blocks of the cluster. A thread of these
// warps has four neighbouring columns.
#include "device/packed_rows.cuh"
#include "encode/attend.cuh"
#include "rows/teams.cuh"

namespace isotope::cuda::gpu {

/// 0.5 x (1 + erf(x / sqrt(2)))
__device__ inline float encode_gelu(float x) { return 0.5f * x * (1.0f + erff(x * 0.70710678f)); }

/// Numbers of a row that a thread has.
struct encode_columns {
  static constexpr int count = 4;
  float x[count];
  /// The first of the thread's columns.
  __device__ static int at() { return 128 * (int(threadIdx.x) / 32 % encode_team) + 4 * (int(threadIdx.x) % 32); }
  __device__ static encode_columns widened(const uint2& u) {
    return {{low_value<bf16>(u.x), high_value<bf16>(u.x), low_value<bf16>(u.y), high_value<bf16>(u.y)}};
  }
  /// Of a row of bf16 in memory.
  __device__ static encode_columns of(const void* row) {
    return widened(*reinterpret_cast<const uint2*>(static_cast<const unsigned char*>(row) + 2 * at()));
  }
  template <int C> __device__ static encode_columns in_table(std::uint64_t table, std::int32_t id, std::int32_t rows) {
    if (id >= 0 && id < rows) return of(pointer<const void>(table + 2 * std::uint64_t(id) * C));
    const float nan = __uint_as_float(0x7fffffffu);
    return {{nan, nan, nan, nan}};
  }
  __device__ void add(const encode_columns& y) {
#pragma unroll
    for (int i = 0; i < count; ++i) x[i] += y.x[i];
  }
};

/// Writes a text's vector, where a thread of C has the sum of a column of `count` rows.
template <int C> __device__ inline void put_text(const encode_arguments& a, int b, int count, float sum, double (&squares)[encode_warps]) {
  static_assert(C == 32 * encode_warps);
  const int t = int(threadIdx.x);
  float y = count == 0 ? 0.0f : sum * (1.0f / float(count));
  if (a.normalise != 0) {
    double square = double(y) * double(y);
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) square += __shfl_xor_sync(all_lanes, square, apart);
    if (t % 32 == 0) squares[t / 32] = square;
    computing_sync();
    double all = 0;
#pragma unroll
    for (int w = 0; w < encode_warps; ++w) all += squares[w];
    const double norm = sqrt(all), by = norm < a.least_norm ? a.least_norm : norm;
    y = float(y / by);
    computing_sync();
  }
  const std::uint16_t bits = bf16_bits(y);
  pointer<std::uint16_t>(a.y)[std::int64_t(b) * C + t] = bits;
  if (a.y_host != 0) pointer<std::uint16_t>(a.y_host)[std::int64_t(b) * C + t] = bits;
}
/// The same from rows in memory, which are added up as clusters of T rows add them.
template <int C> __device__ inline void pool_text(const encode_arguments& a) {
  __shared__ double squares[encode_warps];
  const int T = a.rows;
  const int b = int(blockIdx.x), t = int(threadIdx.x), first = int(start_of(a.starts, b, a.N)), last = int(start_of(a.starts, b + 1, a.N)),
            count = last <= first ? 0 : a.first_row != 0 ? 1 : last - first;
  float y = 0.0f, sum = 0.0f;
  for (int n = first; n < first + count; ++n) {
    sum += bf16_value(pointer<const std::uint16_t>(a.x)[std::int64_t(n) * C + t]);
    if ((n + 1) % T == 0) y += sum, sum = 0.0f;
  }
  put_text<C>(a, b, count, y + sum, squares);
}

template <int C, int F, int H, int T> struct encode_block : encode_heads<C, F, H, T> {
  using base = encode_heads<C, F, H, T>;
  using memory = typename base::memory;
  using columns = encode_columns;
  using base::a, base::s, base::t, base::lane, base::warp, base::g, base::q, base::rank, base::tile, base::own, base::groups, base::R;
  using base::base;

  /// Which of the block's rows the warp's team has, the row of the cluster, and that of the tensor.
  __device__ int mine() const { return warp / encode_team; }
  __device__ bool sends() const { return mine() < base::rows_here(); }
  __device__ bool normalises() const { return sends() && warp % encode_team < encode_norm_warps; }
  __device__ int row() const { return rank + R * mine(); }
  __device__ int tensor_row() const { return tile * T + row(); }

  /// Normalises a row, by the first warps of its team: s.row has it, rounded, and, if it is behind a layer, so has a.x. A warp has the mean of its columns and the squares of their
  /// distances to it, which are combined as by Chan, Golub & LeVeque 1979.
  __device__ void normalise(const columns& x, const columns& weight, const columns& bias, float epsilon, bool behind_layer) {
    float sum = (x.x[0] + x.x[1]) + (x.x[2] + x.x[3]);
    sum = over_warp(sum, sum_of_two());
    const float near = sum * (1.0f / 128);
    float squares = 0;
#pragma unroll
    for (int k = 0; k < 4; ++k) squares = fmaf(x.x[k] - near, x.x[k] - near, squares);
    squares = over_warp(squares, sum_of_two());
    const int part = warp % encode_team;
    if (lane == 0) s.moments[mine()][part] = {near, squares};
    group_sync<encode_norm_warps>(2 + encode_warps / 2 + encode_warps / encode_team + mine());
    float mean = 0, all = 0;
    float2 of[encode_norm_warps];
#pragma unroll
    for (int k = 0; k < encode_norm_warps; ++k) of[k] = s.moments[mine()][k], mean += of[k].x, all += of[k].y;
    mean *= 1.0f / encode_norm_warps;
#pragma unroll
    for (int k = 0; k < encode_norm_warps; ++k) all = fmaf(128 * (of[k].x - mean), of[k].x - mean, all);
    const float by = rsqrtf(all * (1.0f / C) + epsilon);
    float y[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) y[k] = fmaf((x.x[k] - mean) * by, weight.x[k], bias.x[k]);
    const uint2 four{pair_bits<bf16>(y[0], y[1]), pair_bits<bf16>(y[2], y[3])};
    *reinterpret_cast<uint2*>(&s.row[mine()][columns::at()]) = four;
    if (behind_layer && a.x != 0 && tensor_row() < a.N)
      *reinterpret_cast<uint2*>(pointer<std::uint16_t>(a.x) + std::int64_t(tensor_row()) * C + columns::at()) = four;
  }
  /// Sends the team's row to all blocks, behind what its first warps have written. A block without a head may get a row behind attention before it has waited for the same row behind
  /// the MLP; the first was sent half a layer earlier by the same block, so it has come, although nothing says so formally.
  __device__ void send_row() {
    constexpr int chunks = C / 8, threads = 32 * encode_team;
    static_assert(chunks * R % threads == 0);
    if (sends()) {
      group_sync<encode_team>(2 + encode_warps / 2 + mine());
#pragma unroll
      for (int i = 0; i < chunks * R / threads; ++i) {
        const int k = t % threads + threads * i, chunk = k % chunks;
        const float4 eight = reinterpret_cast<const float4*>(s.row[mine()])[chunk];
        send(reinterpret_cast<const float*>(s.x + row() * base::pitch + 16 * chunk), shared_address(&s.gathered[base::gathers % 2]),
             std::uint32_t(k / chunks), eight);
      }
    }
    base::coming = true;
  }
  /// Adds up the parts of the block's rows from `sources` blocks, the bias and the rows before, normalises the sums and sends them. Those behind attention are not stored: blocks
  /// without a head may not have read the rows of the launch before.
  __device__ void add_and_normalise(int sources, bool behind_layer, std::uint64_t bias_at, std::uint64_t weight_at,
                                    std::uint64_t norm_bias_at) {
    if (normalises()) {
      const columns bias = columns::of(pointer<const void>(bias_at)), weight = columns::of(pointer<const void>(weight_at)),
                    norm_bias = columns::of(pointer<const void>(norm_bias_at));
      columns x = columns::of(s.x + row() * base::pitch);
      x.add(bias);
      wait_for_sent(shared_address(&s.summed), std::uint32_t(base::sums) & 1);
      columns sum[2] = {};
#pragma unroll
      for (int r = 0; r < R; ++r)
        if (r < sources) sum[r % 2].add(columns::of(s.parts[r][mine()]));
      sum[0].add(sum[1]);
      x.add(sum[0]);
      if (t == 0) barrier_expect(shared_address(&s.summed), base::bytes_of_parts(base::sums % 2 == 0 ? R : H));
      normalise(x, weight, norm_bias, a.epsilon, behind_layer);
    }
    ++base::sums;
    send_row();
  }

  /// Where the texts of the cluster's rows begin and end, and the block's count, by the last warp.
  __device__ void find_texts() {
    if (warp != encode_warps - 1) return;
    if (a.counts != 0 && lane == 0) s.passed = *base::count();
    const bool keeps = a.kept_starts != 0 && blockIdx.x == 0;
    for (int b = lane; b <= a.texts; b += 32) {
      s.starts[b] = std::int32_t(start_of(a.starts, b, a.N));
      if (keeps) pointer<std::int32_t>(a.kept_starts)[b] = s.starts[b];
    }
    __syncwarp();
    const int r = lane % T, row = tile * T + r;
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
    for (int apart = 16; apart > 0; apart /= 2) {
      const int other = __shfl_xor_sync(all_lanes, least, apart), another = __shfl_xor_sync(all_lanes, most, apart);
      least = other < least ? other : least;
      most = another > most ? another : most;
    }
    if (lane < T) s.first_key[r] = first, s.end_keys[r] = end;
    if (lane == 0) s.first_group = least / encode_rows, s.end_groups = most == 0 ? s.first_group : (most - 1) / encode_rows + 1;
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
        x = columns::in_table<C>(a.words, word, a.word_count);
        x.add(kind);
        x.add(columns::in_table<C>(a.places, place, a.place_count));
      }
      normalise(x, weight, bias, a.embedding_epsilon, true);
    }
    cluster_wait();
    send_row();
    computing_sync();  // all warps see what the last one has found
  }
  /// Goes on where another launch has ended: behind a layer with all rows, or behind queries, keys and values with the block's rows. Nobody waits for a block without a head before
  /// rows behind attention are sent to it, so it copies its own rows alone: a late copy of another one would take the place of the new row.
  __device__ void resume() {
    find_texts();
    constexpr int chunks = C / 8;
    const bool all = a.first % 2 == 0 && base::has_head();
    for (int i = t; i < chunks * T; i += 32 * encode_warps) {
      const int at = i / chunks, row = tile * T + at, chunk = i % chunks;
      if (all || at % R == rank)
        *reinterpret_cast<uint4*>(s.x + at * base::pitch + 16 * chunk) =
            row < a.N ? pointer<const uint4>(a.x)[std::int64_t(row) * chunks + chunk] : uint4{0, 0, 0, 0};
    }
    cluster_wait();
    computing_sync();
  }

  /// Reads weights of the MLP.
  __device__ void prepare_mlp() {
    base::load_lines();
    base::template load_columns<encode_group>();
  }
  /// Attention of the block's head, and the rows behind it.
  __device__ void attend(int layer) {
    const encode_vectors& v = a.vectors[layer - a.base];
    base::gather();
    if (base::has_head()) {
      base::attend_head(layer);
      base::template multiply_and_send<1>(s.attended, 2 * encode_head);
    }
    add_and_normalise(H, false, v.projection_bias, v.norm_weight, v.norm_bias);
    prepare_mlp();  // warps without a row do so while the others wait for its parts
  }
  /// The MLP, and the rows behind it.
  __device__ void multiply_mlp(int layer) {
    const encode_vectors& v = a.vectors[layer - a.base];
    const int column = base::first_line();
    const std::uint32_t two = *pointer<const std::uint32_t>(v.up_bias + 2 * std::uint64_t(rank * base::hidden + column));
    base::gather();
    float y[groups][2];
    base::multiply_lines(y);
#pragma unroll
    for (int m = 0; m < groups; ++m)
      *reinterpret_cast<std::uint32_t*>(s.p.hidden + base::row_of(m) * memory::hidden_pitch + 2 * column) =
          pair_bits<bf16>(encode_gelu(y[m][0] + low_value<bf16>(two)), encode_gelu(y[m][1] + high_value<bf16>(two)));
    computing_sync();
    base::template multiply_and_send<encode_group>(s.p.hidden, memory::hidden_pitch);
    add_and_normalise(R, true, v.down_bias, v.last_norm_weight, v.last_norm_bias);
  }

  /// The mean of each text's rows, or its first row, divided by its norm: a thread has a column. The first cluster that has rows of a text adds the sums of the others to its own, in their
  /// order. It waits for clusters behind it alone, so somebody always goes on.
  __device__ void finish(int layer) {
    for (int b = rank; a.y != 0 && b < a.texts; b += R) {
      const int first = s.starts[b], last = s.starts[b + 1], count = last <= first ? 0 : a.first_row != 0 ? 1 : last - first,
                end = first + count, here = tile * T;
      const bool begins = count == 0 ? tile == 0 : first / T == tile;
      if (!begins && (first > here || end <= here)) continue;
      float y = 0.0f;
      for (int n = first > here ? first : here; n < end && n < here + T; ++n)
        y += bf16_value(reinterpret_cast<const std::uint16_t*>(s.x + (n - here) * base::pitch)[t]);
      const auto sum_of = [&](int cluster) { return a.sums + 8 * std::uint64_t((b * a.tiles + cluster) * C + t); };
      if (!begins) {
        store_word(sum_of(tile), y, base::tag_of(layer));
        continue;
      }
      for (int cluster = tile + 1; cluster * T < end; ++cluster) {
        float other[1];
        wait_for_words(sum_of(cluster), 0, base::tag_of(layer), other);
        y += other[0];
      }
      put_text<C>(a, b, count, y, s.squares);
    }
  }
  /// All threads of the block have read its count when it changes.
  __device__ void count_layers() {
    if (a.counts == 0) return;
    computing_sync();
    if (t == 0) *base::count() = s.passed + std::uint32_t((a.end - a.first) / 2);
  }
};

}  // namespace isotope::cuda::gpu
