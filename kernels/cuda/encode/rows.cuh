#pragma once
// Rows of the encoder: three warps add up the parts of half of a row that their block owns, normalise them and send them to all blocks of the cluster. A thread of these warps has two
// neighbouring columns.
#include "device/packed_rows.cuh"
#include "encode/attend.cuh"

namespace isotope::cuda::gpu {

/// 0.5 x (1 + erf(x / sqrt(2)))
__device__ inline float encode_gelu(float x) { return 0.5f * x * (1.0f + erff(x * 0.70710678f)); }

/// Two numbers of a row of bf16 in memory.
__device__ inline float2 encode_two(const void* row, int column) {
  const std::uint32_t u = *reinterpret_cast<const std::uint32_t*>(static_cast<const std::uint16_t*>(row) + column);
  return {low_value<bf16>(u), high_value<bf16>(u)};
}
__device__ inline float2 encode_two(std::uint64_t row, int column) { return encode_two(pointer<const void>(row), column); }
template <int C> __device__ inline float2 encode_two_in_table(std::uint64_t table, std::int32_t id, std::int32_t rows, int column) {
  if (id >= 0 && id < rows) return encode_two(table + 2 * std::uint64_t(id) * C, column);
  const float nan = __uint_as_float(0x7fffffffu);
  return {nan, nan};
}
__device__ inline void encode_add(float2& x, float2 y) { x.x += y.x, x.y += y.y; }

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
            count = last <= first      ? 0
                    : a.first_row != 0 ? 1
                                       : last - first;
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
  using base::a, base::s, base::t, base::lane, base::warp, base::g, base::q, base::rank, base::tile, base::own, base::groups, base::R;
  using base::base;

  /// Which of the block's halves of rows a warp has, its number in the cluster, the row, the first of the thread's two columns, and the warp of the row.
  __device__ int mine() const { return warp / encode_half_warps; }
  __device__ bool has_half() const { return warp < encode_half_warps * own; }
  __device__ int number() const { return rank + R * mine(); }
  __device__ int row() const { return number() % T; }
  __device__ int part() const { return number() / T * encode_half_warps + warp % encode_half_warps; }
  __device__ int column() const { return 64 * part() + 2 * lane; }
  __device__ int tensor_row() const { return tile * T + row(); }

  /// The mean of the row that the warp has a part of, and the reciprocal of its standard deviation. Threads and warps have the mean of their columns and the squares of their distances to it,
  /// which are combined as by Chan, Golub & LeVeque 1979. Another block may have the other half: it may send its moments while those of the phase before are still read here.
  __device__ float2 measure(float2 x, float epsilon) {
    float mean = 0.5f * (x.x + x.y), squares = 0.5f * (x.x - x.y) * (x.x - x.y);
#pragma unroll
    for (int apart = 1; apart < 32; apart *= 2) {
      const float other = __shfl_xor_sync(all_lanes, mean, apart), more = __shfl_xor_sync(all_lanes, squares, apart);
      squares = fmaf((mean - other) * (mean - other), float(apart), squares + more);
      mean = 0.5f * (mean + other);
    }
    const int turn = base::gathers % 2;
    float2(&all)[own][2 * encode_half_warps] = s.moments[turn];
    int at = mine();
    if constexpr (base::whole_rows) {
      at = row() / R;  // halves of a row are in the same block
      if (lane == 0) all[at][part()] = {mean, squares};
      group_sync<2 * encode_half_warps>(2 + encode_warps / 2 + at);
    } else {
      const int other = number() < T ? number() + T : number() - T;
      const std::uint32_t barrier = shared_address(&s.measured[turn]);
      if (lane == 0) {
        all[at][part()] = {mean, squares};
        send(&all[other / R][part()].x, barrier, std::uint32_t(other % R), mean, squares);
      }
      group_sync<encode_half_warps>(2 + encode_warps / 2 + at);
      wait_for_sent(barrier, std::uint32_t(base::gathers / 2) & 1);
      if (t == 0) barrier_expect(barrier, base::measured_bytes);
    }
    constexpr int warps = 2 * encode_half_warps;
    float2 of[warps];
    mean = 0, squares = 0;
#pragma unroll
    for (int k = 0; k < warps; ++k) of[k] = all[at][k], mean += of[k].x, squares += of[k].y;
    mean *= 1.0f / warps;
#pragma unroll
    for (int k = 0; k < warps; ++k) squares = fmaf(64 * (of[k].x - mean), of[k].x - mean, squares);
    return {mean, rsqrtf(squares * (1.0f / C) + epsilon)};
  }
  /// Normalises the warp's columns of a row, and sends them to all blocks: eight threads have all chunks of them, and send them to one block at a time. Rows behind a layer are in a.x, too. A block
  /// without a head may get a row behind attention before it has waited for the same row behind the MLP; the first was sent half a layer earlier by the same warp, so it has come,
  /// although nothing says so formally.
  __device__ void normalise_and_send(float2 x, float2 weight, float2 bias, float epsilon, bool behind_layer) {
    const float2 by = measure(x, epsilon);
    const std::uint32_t two = pair_bits<bf16>(fmaf((x.x - by.x) * by.y, weight.x, bias.x), fmaf((x.y - by.x) * by.y, weight.y, bias.y));
    if (behind_layer && a.x != 0 && tensor_row() < a.N)
      *reinterpret_cast<std::uint32_t*>(pointer<std::uint16_t>(a.x) + std::int64_t(tensor_row()) * C + column()) = two;
    const int chunk = lane % 8;
    float4 eight;
    eight.x = __uint_as_float(__shfl_sync(all_lanes, two, 4 * chunk)),
    eight.y = __uint_as_float(__shfl_sync(all_lanes, two, 4 * chunk + 1));
    eight.z = __uint_as_float(__shfl_sync(all_lanes, two, 4 * chunk + 2)),
    eight.w = __uint_as_float(__shfl_sync(all_lanes, two, 4 * chunk + 3));
    const auto* to = reinterpret_cast<const float*>(s.x + row() * base::pitch + 2 * (64 * part() + 8 * chunk));
#pragma unroll
    for (int i = 0; i < R / 4; ++i) send(to, shared_address(&s.gathered[base::gathers % 2]), std::uint32_t(lane / 8 + 4 * i), eight);
  }
  /// What the thread adds to its columns and scales them with, two of bf16 each. They are read long before they are needed.
  struct vectors {
    std::uint32_t bias, weight, norm_bias;
  };
  __device__ vectors read_vectors(std::uint64_t bias, std::uint64_t weight, std::uint64_t norm_bias) const {
    if (!has_half()) return {};
    const auto two = [&](std::uint64_t at) { return pointer<const std::uint32_t>(at)[column() / 2]; };
    return {two(bias), two(weight), two(norm_bias)};
  }
  __device__ static float2 numbers(std::uint32_t two) { return {low_value<bf16>(two), high_value<bf16>(two)}; }
  /// Adds up the parts of the block's halves of rows from `sources` blocks, the bias and the rows before, normalises the sums and sends them. Those behind attention are not stored: blocks
  /// without a head may not have read the rows of the launch before.
  __device__ void add_and_normalise(int sources, bool behind_layer, const vectors& v) {
    if (has_half()) {
      float2 x = encode_two(s.x + row() * base::pitch, column());
      encode_add(x, numbers(v.bias));
      wait_for_sent(shared_address(&s.summed), std::uint32_t(base::sums) & 1);
      float2 sum[2] = {};
#pragma unroll
      for (int r = 0; r < R; ++r)
        if (r < sources) encode_add(sum[r % 2], encode_two(s.parts[r][mine()], column() % (C / 2)));
      encode_add(sum[0], sum[1]);
      encode_add(x, sum[0]);
      if (t == 0) barrier_expect(shared_address(&s.summed), base::bytes_of_parts(base::sums % 2 == 0 ? R : H));
      normalise_and_send(x, numbers(v.weight), numbers(v.norm_bias), a.epsilon, behind_layer);
    }
    ++base::sums;
    base::coming = true;
  }

  /// Ids of the cluster's rows and where texts start, which may lie in the memory of the host: one block of a cluster reads them, since few reads are on their way to the host at a time, and
  /// sends them to the others. Before that, the cluster meets.
  __device__ void read_ids() {
    const int chunks = (2 * T + a.texts + 1 + 3) / 4;
    if (rank == 0) {
      const int row = tile * T + lane;
      if (warp < 2 && lane < T)
        (warp == 0 ? s.words : s.places)[lane] = row < a.N ? pointer<const std::int32_t>(warp == 0 ? a.word_ids : a.place_ids)[row] : -1;
      else if (warp >= 2 && t - 64 <= a.texts) s.starts[t - 64] = std::int32_t(start_of(a.starts, t - 64, a.N));
      computing_sync();
    } else if (t == 0) {
      barrier_expect(shared_address(&s.asked), std::uint32_t(16 * chunks));
    }
    cluster_wait();
    if (rank == 0) {
      for (int i = t; i < chunks * (R - 1); i += 32 * encode_warps) {
        const auto* chunk = reinterpret_cast<const float4*>(s.words) + i % chunks;
        send(reinterpret_cast<const float*>(chunk), shared_address(&s.asked), std::uint32_t(1 + i / chunks), *chunk);
      }
      for (int b = t; a.kept_starts != 0 && tile == 0 && b <= a.texts; b += 32 * encode_warps)
        pointer<std::int32_t>(a.kept_starts)[b] = s.starts[b];
    } else {
      wait_for_sent(shared_address(&s.asked), 0);
    }
  }
  /// Where the texts of the cluster's rows begin and end, by the last warp.
  __device__ void find_texts() {
    if (warp != encode_warps - 1) return;
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
  /// Looks up the block's halves of rows in the tables and normalises them.
  __device__ void embed() {
    if (a.counts != 0 && t == 32 * (encode_warps - 1)) s.passed = *base::count();
    float2 kind{0.0f, 0.0f}, weight = kind, bias = kind;
    if (has_half())
      kind = encode_two(a.kinds, column()), weight = encode_two(a.embedding_weight, column()),
      bias = encode_two(a.embedding_bias, column());
    read_ids();
    find_texts();
    if (has_half()) {
      float2 x = kind;
      if (tensor_row() < a.N) {
        const float2 place = encode_two_in_table<C>(a.places, s.places[row()], a.place_count, column());
        x = encode_two_in_table<C>(a.words, s.words[row()], a.word_count, column());
        encode_add(x, kind);
        encode_add(x, place);
      }
      normalise_and_send(x, weight, bias, a.embedding_epsilon, true);
    }
    base::coming = true;
    computing_sync();  // all warps see what the last one has found
  }
  /// Goes on where another launch has ended: behind a layer with all rows, or behind queries, keys and values with the block's halves of rows. Nobody waits for a block without a head before
  /// rows behind attention are sent to it, so it copies its own halves alone: a late copy of another one would take the place of the new row.
  __device__ void resume() {
    if (warp == encode_warps - 1) {
      if (a.counts != 0 && lane == 0) s.passed = *base::count();
      for (int b = lane; b <= a.texts; b += 32) s.starts[b] = std::int32_t(start_of(a.starts, b, a.N));
      __syncwarp();
    }
    find_texts();
    constexpr int chunks = C / 8;
    const bool all = a.first % 2 == 0 && base::has_head();
    for (int i = t; i < chunks * T; i += 32 * encode_warps) {
      const int at = i / chunks, row = tile * T + at, chunk = i % chunks;
      if (all || (chunk / (chunks / 2) * T + at) % R == rank)
        *reinterpret_cast<uint4*>(s.x + at * base::pitch + 16 * chunk) =
            row < a.N ? pointer<const uint4>(a.x)[std::int64_t(row) * chunks + chunk] : uint4{0, 0, 0, 0};
    }
    cluster_wait();
    computing_sync();
  }

  __device__ vectors vectors_behind_attention(int layer) const {
    const encode_vectors& of = a.vectors[layer - a.base];
    return read_vectors(of.projection_bias, of.norm_weight, of.norm_bias);
  }
  /// Attention of the block's head, and the rows behind it.
  __device__ void attend(int layer, const vectors& v) {
    base::gather();
    if (base::has_head()) {
      base::attend_head(layer);
      base::template multiply_and_send<1>(s.attended, 2 * encode_head);
    }
    base::load_lines();  // while parts are on their way
    add_and_normalise(H, false, v);
    base::template load_columns<encode_group>();  // while rows are on their way
  }
  /// The MLP, and the rows behind it.
  __device__ void multiply_mlp(int layer, bool last) {
    const encode_vectors& of = a.vectors[layer - a.base];
    const int column = base::first_line();
    const std::uint32_t two = *pointer<const std::uint32_t>(of.up_bias + 2 * std::uint64_t(rank * base::hidden + column));
    const vectors v = read_vectors(of.down_bias, of.last_norm_weight, of.last_norm_bias);
    base::gather();
    float y[groups][2];
    base::multiply_lines(y);
#pragma unroll
    for (int m = 0; m < groups; ++m)
      *reinterpret_cast<std::uint32_t*>(s.p.hidden + base::row_of(m) * memory::hidden_pitch + 2 * column) =
          pair_bits<bf16>(encode_gelu(y[m][0] + low_value<bf16>(two)), encode_gelu(y[m][1] + high_value<bf16>(two)));
    computing_sync();
    base::template multiply_and_send<encode_group>(s.p.hidden, memory::hidden_pitch);
    if (!last) base::prepare_qkv();
    add_and_normalise(R, true, v);
  }

  /// The mean of each text's rows, or its first row, divided by its norm: a thread has a column. The first cluster that has rows of a text adds the sums of the others to its own, in their
  /// order. It waits for clusters behind it alone, so somebody always goes on.
  __device__ void finish(int layer) {
    for (int b = rank; a.y != 0 && b < a.texts; b += R) {
      const int first = s.starts[b], last = s.starts[b + 1],
                count = last <= first      ? 0
                        : a.first_row != 0 ? 1
                                           : last - first,
                end = count == 0 ? 0 : first + count, here = tile * T;
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
