#pragma once
// A block of the encoder: its memory, the pieces of weights that come to it, and products of rows in shared memory with them. A thread reads chunks of eight elements of rows and of
// weights and passes them to mma.sync as they are: both have the same order of elements. 16 lines of weights are multiplied with eight rows, so that a cluster may have 24. Weights of two products that follow each other go to registers before the rows that they are
// multiplied with have come: reading them takes as long as reading the rows.
#include "device/early.cuh"
#include "encode/exchange.cuh"
#include "rows/teams.cuh"

namespace isotope::cuda::gpu {

template <int C, int F, int T> struct encode_memory {
  static constexpr int R = encode_ranks, own = encode_own_halves(T), groups = T / encode_rows, pitch = encode_pitch(C),
                       hidden_pitch = encode_pitch(F / R), slots = encode_slots(T), most_bytes = encode_bytes(C, F, T);
  alignas(128) unsigned char ring[slots][encode_piece_bytes(C)];
  alignas(128) unsigned char x[T * pitch];         // all rows of the cluster
  alignas(16) std::uint16_t parts[R][own][C / 2];  // of the block's halves of rows, from each block
  struct products {
    alignas(16) unsigned char hidden[T * hidden_pitch];  // the block's hidden values
    float2 halves[groups][encode_warps][32];             // sums of a warp that another one adds to its own
  };
  union {
    float results[encode_attending][T][encode_result_pitch];  // of the warps of attention
    products p;
  };
  alignas(16) unsigned char attended[2 * T * encode_head];  // of the block's head
  alignas(16) unsigned char heads[groups][encode_head_tile_bytes];
  float2 tops[encode_attending][T];  // maximum of scores in units of log2, and sum of their powers of two
  float2
      moments[2][own]
             [2 *
              encode_half_warps];  // of a row, by turns: the mean of a warp's columns, and the sum of the squares of their distances to it
  double squares[encode_warps];
  alignas(16) std::int32_t words[T];  // of the cluster's rows: what the first block reads and sends to the others, to the end of `starts`
  std::int32_t places[T], starts[encode_most_texts + 4];
  std::int32_t first_group, end_groups;    // groups of eight rows that the cluster attends to
  std::int32_t first_key[T], end_keys[T];  // the rows that a row attends to
  std::uint32_t passed;                    // the block's count when the launch began
  std::uint64_t full[slots], empty[slots], asked, summed, measured[2], gathered[2];
};

/// sums += the products of 16 lines of weights with eight rows, over 32 elements. `low` and `high`: the thread's chunks of lines lane / 4 and lane / 4 + 8.
__device__ inline void multiply_chunk(const uint4& low, const uint4& high, const uint4& row, float (&first)[4], float (&second)[4]) {
  const std::uint32_t x[4] = {low.x, high.x, low.y, high.y}, y[4] = {low.z, high.z, low.w, high.w}, v[2] = {row.x, row.y},
                      u[2] = {row.z, row.w};
  mma_16x8x16_bf16(first, x, v);
  mma_16x8x16_bf16(second, y, u);
}
/// The same over the first or last two of the thread's four pairs of elements, so 16 elements of 32.
__device__ inline void multiply_half_chunk(const uint4& low, const uint4& high, const uint4& row, int part, float (&sum)[4]) {
  const std::uint32_t x[4] = {part == 0 ? low.x : low.z, part == 0 ? high.x : high.z, part == 0 ? low.y : low.w,
                              part == 0 ? high.y : high.w},
                      v[2] = {part == 0 ? row.x : row.z, part == 0 ? row.y : row.w};
  mma_16x8x16_bf16(sum, x, v);
}
__device__ inline uint4 chunk_at(const unsigned char* p) { return *reinterpret_cast<const uint4*>(p); }

/// The place of a thread, and the phases of what it waits for.
template <int C, int F, int H, int T> struct encode_pipe {
  using memory = encode_memory<C, F, T>;
  static constexpr int R = encode_ranks, slots = memory::slots, own = memory::own, groups = memory::groups, pitch = memory::pitch,
                       hidden = F / R, piece_bytes = encode_piece_bytes(C), half_chunks = C / 64;
  static_assert(C == 32 * encode_warps && C / H == encode_head && H <= R && hidden == encode_group * encode_lines && T % encode_rows == 0);
  static_assert(slots == 6 || slots == 7, "see release()");
  static_assert(encode_group * encode_lines == 8 * encode_warps && own * encode_half_warps <= encode_warps && C == 128 * encode_half_warps);
  const encode_arguments& a;
  memory& s;
  int t = int(threadIdx.x), lane = t % 32, warp = t / 32, g = lane / 4, q = lane % 4;
  int rank = int(cluster_rank()), tile = int(blockIdx.x) / R;
  int half = warp / (encode_warps / 2), pair = warp % (encode_warps / 2);  // half of the elements of 16 lines
  int piece = 0;                                                           // pieces of weights so far
  int sums = 0, gathers = 0;                                               // phases that have ended
  bool coming = false;                                                     // whether rows are still to be waited for
  uint4 w[4 * encode_group], v[4 * encode_group];                          // weights of the next product by lines, and of that behind it
  __device__ encode_pipe(const encode_arguments& all, memory& shared) : a(all), s(shared) {}

  /// Computes anew what follows from the place of the thread, so that registers hold the place alone.
  __device__ void keep_place() {
#if !defined(ISOTOPE_EMULATED_DEVICE)
    asm volatile("" : "+r"(t), "+r"(lane), "+r"(warp), "+r"(g), "+r"(q), "+r"(rank), "+r"(half), "+r"(pair));
#endif
  }
  __device__ bool has_head() const { return rank < H; }
  /// The halves of rows that a block owns, of C / 2 columns each: rank + R i. The halves of a row are those of its number and of T more, which other blocks own if T is no multiple of R.
  static constexpr bool whole_rows = T % R == 0;
  __device__ static std::uint32_t bytes_of_parts(int sources) { return std::uint32_t(sources * own * C); }
  static constexpr std::uint32_t measured_bytes = own * encode_half_warps * 8;  // from the owners of the other halves
  static constexpr std::uint32_t gathered_bytes = T * 2 * C;

  __device__ void begin() {
    if (t == 0) {
#pragma unroll
      for (int i = 0; i < slots; ++i) barrier_init(shared_address(&s.full[i]), 1), barrier_init(shared_address(&s.empty[i]), encode_warps);
      barrier_init(shared_address(&s.summed), 1), barrier_init(shared_address(&s.asked), 1);
#pragma unroll
      for (int i = 0; i < 2; ++i) barrier_init(shared_address(&s.gathered[i]), 1), barrier_init(shared_address(&s.measured[i]), 1);
      barrier_init_fence();
      barrier_expect(shared_address(&s.summed), bytes_of_parts(H));
#pragma unroll
      for (int i = 0; i < 2; ++i)
        barrier_expect(shared_address(&s.gathered[i]), gathered_bytes), barrier_expect(shared_address(&s.measured[i]), measured_bytes);
    }
    __syncthreads();
    cluster_arrive();
  }

  /// Starts the copies of all pieces, in the order in which they are used, as soon as there is room for each. One thread does this.
  __device__ void ask_for_weights() {
    int n = 0;
    const auto ask = [&](const tensor_map_bytes& map, int x, int y) {
      const int slot = n % slots;
      if (n >= slots) barrier_wait(shared_address(&s.empty[slot]), std::uint32_t(n / slots - 1) & 1);
      barrier_expect(shared_address(&s.full[slot]), piece_bytes);
      tensor_load(shared_address(s.ring[slot]), map, x, y, 0, shared_address(&s.full[slot]));
      ++n;
    };
    for (int stage = a.first; stage < a.end; ++stage) {
      const encode_layer& of = a.layers[stage / 2 - a.base];
      if (stage % 2 == 0) {
        if (has_head())
          for (int kind = 0; kind < 3; ++kind) ask(of.qkv, 0, kind * C + rank * encode_head);
        continue;
      }
      if (has_head()) ask(of.projection, rank * encode_head, 0);
      for (int i = 0; i < encode_group; ++i) ask(of.up, 0, rank * hidden + i * encode_lines);
      for (int i = 0; i < encode_group; ++i) ask(of.down, rank * hidden + i * encode_lines, 0);
    }
  }
  __device__ void wait_for_piece(int n) { barrier_wait(shared_address(&s.full[n % slots]), std::uint32_t(n / slots) & 1); }
  /// The warp needs the next `count` pieces no more. It may have waited for one of them alone, so a fast warp could count twice for a slot that has not been filled again; it does not, since
  /// all warps that compute meet between a piece and the one that follows it in its slot.
  __device__ void release(int count) {
    __syncwarp();
    if (lane == 0)
      for (int i = 0; i < count; ++i) barrier_arrive(shared_address(&s.empty[(piece + i) % slots]));
    piece += count;
  }

  /// Which of its 16 lines a thread has first or second, of the 8 pairs of neighbours: threads with odd g have the second one first, so that two of them read 64 bytes of an even and of an
  /// odd line, and meet no conflict.
  __device__ int line_of(int which) const { return 2 * g + (which ^ (g & 1)); }

  /// Reads the warp's weights of the next 96 lines to w: 16 lines, half of their elements.
  __device__ void load_lines() {
    const int n = piece + pair / 2;
    wait_for_piece(n);
    const unsigned char* from = s.ring[n % slots] + pair % 2 * 16 * 64 + 16 * q + half * half_chunks * encode_lines * 64;
#pragma unroll
    for (int i = 0; i < half_chunks; ++i)
#pragma unroll
      for (int k = 0; k < 2; ++k) w[2 * i + k] = chunk_at(from + (i * encode_lines + line_of(k)) * 64);
    release(encode_group);
  }
  /// The products of the rows with w, of all elements. Of rows 8 m + 2 q and the next one and lines 16 pair + 2 g and the next one, y has both lines of the row `half`, or, with
  /// `lines`, both rows of the line `half ^ g % 2`. Products of different rows follow each other, since each waits for the one before of the same rows.
  __device__ void multiply_lines(float (&y)[groups][2], bool lines = false) {
    const bool swapped = g % 2 != 0, second = half != 0;
    const unsigned char* x = s.x + g * pitch + 16 * q + half * half_chunks * 64;
    float even[groups][4] = {}, odd[groups][4] = {};
#pragma unroll
    for (int i = 0; i < half_chunks; ++i)
#pragma unroll
      for (int m = 0; m < groups; ++m)
        multiply_chunk(w[2 * i], w[2 * i + 1], chunk_at(x + m * encode_rows * pitch + 64 * i), even[m], odd[m]);
#pragma unroll
    for (int m = 0; m < groups; ++m) {
      float all[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) all[k] = even[m][k] + odd[m][k];
      // Rows of both lines: 0 and 1 of the first one, 2 and 3 of the second one.
      const float here[2] = {second ? (lines ? all[2] : all[1]) : all[0], second  ? all[3]
                                                                          : lines ? all[1]
                                                                                  : all[2]},
                  there[2] = {second ? all[0] : (lines ? all[2] : all[1]), second ? (lines ? all[1] : all[2]) : all[3]};
      const bool swap = swapped && !lines;
      y[m][0] = swap ? here[1] : here[0], y[m][1] = swap ? here[0] : here[1];
      s.p.halves[m][warp][lane] = swap ? make_float2(there[1], there[0]) : make_float2(there[0], there[1]);
    }
    group_sync<2>(2 + pair);
#pragma unroll
    for (int m = 0; m < groups; ++m) {
      const float2 rest = s.p.halves[m][warp < encode_warps / 2 ? warp + encode_warps / 2 : warp - encode_warps / 2][lane];
      y[m][0] += rest.x, y[m][1] += rest.y;
    }
  }
  /// The row of group m that multiply_lines() gives, and the first of its two lines.
  __device__ int row_of(int m) const { return encode_rows * m + 2 * q + half; }
  __device__ int first_line() const { return 16 * pair + 2 * g; }

  /// Reads the warp's 32 lines of the next Count pieces of C lines to v, in four groups of eight, so that of the products a thread has eight neighbouring columns, from 32 warp + 8 q on.
  template <int Count> __device__ void load_columns() {
#pragma unroll
    for (int i = 0; i < Count; ++i) {
      const int n = piece + i;
      wait_for_piece(n);
      const unsigned char* from = s.ring[n % slots] + (32 * warp + g / 2 * 8 + g % 2) * 64 + 16 * q;
#pragma unroll
      for (int k = 0; k < 4; ++k) v[4 * i + k] = chunk_at(from + 2 * k * 64);
    }
    release(Count);
  }
  /// Sends the thread's products of all rows of 32 Count elements with v to the blocks that own them, rounded: what passes between blocks is bound by bytes (bench/CUDA_INFERENCE.md).
  template <int Count> __device__ void multiply_and_send(const unsigned char* x, int x_pitch) {
    float y[groups][2][4] = {};
    const unsigned char* rows = x + g * x_pitch + 16 * q;
#pragma unroll
    for (int i = 0; i < Count; ++i) {
      uint4 chunk[groups];
#pragma unroll
      for (int m = 0; m < groups; ++m) chunk[m] = chunk_at(rows + m * encode_rows * x_pitch + 64 * i);
#pragma unroll
      for (int part = 0; part < 2; ++part)
#pragma unroll
        for (int m = 0; m < groups; ++m)
#pragma unroll
          for (int k = 0; k < 2; ++k) multiply_half_chunk(v[4 * i + 2 * k], v[4 * i + 2 * k + 1], chunk[m], part, y[m][k]);
    }
    // Columns 32 warp + 8 q + 2 i and the next one of row g, of which the thread had lines g of two rows.
    std::uint32_t two[groups][4];
#pragma unroll
    for (int m = 0; m < groups; ++m)
#pragma unroll
      for (int i = 0; i < 4; ++i) two[m][i] = transposed_matrix(pair_bits<bf16>(y[m][i / 2][i % 2 * 2], y[m][i / 2][i % 2 * 2 + 1]));
    constexpr int warps = encode_warps / 2;  // of half of the columns
#pragma unroll
    for (int m = 0; m < groups; ++m) {
      const int number = warp / warps * T + m * encode_rows + g;
      const float4 eight{__uint_as_float(two[m][0]), __uint_as_float(two[m][1]), __uint_as_float(two[m][2]), __uint_as_float(two[m][3])};
      send(reinterpret_cast<const float*>(s.parts[rank][number / R] + 32 * (warp % warps) + 8 * q), shared_address(&s.summed),
           std::uint32_t(number % R), eight);
    }
  }
  /// Waits for the rows of all blocks, if they are coming.
  __device__ void gather() {
    if (!coming) return;
    const std::uint32_t barrier = shared_address(&s.gathered[gathers % 2]);
    wait_for_sent(barrier, std::uint32_t(gathers / 2) & 1);
    if (t == 0) barrier_expect(barrier, gathered_bytes);
    ++gathers;
    coming = false;
  }
};

}  // namespace isotope::cuda::gpu
