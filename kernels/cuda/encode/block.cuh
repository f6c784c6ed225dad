#pragma once
// A block of the encoder: its memory, the pieces of weights that come to it, and products of rows in shared memory with them. A thread reads chunks of eight elements of rows and of
// weights and passes them to mma.sync as they are: both have the same order of elements.
#include "device/early.cuh"
#include "encode/exchange.cuh"
#include "rows/vectors.cuh"

namespace isotope::cuda::gpu {

template <int C, int F, int H, int R> struct encode_memory {
  static constexpr int slots = encode_slots(R), own = encode_own_rows(R), pitch = encode_pitch(C), hidden_pitch = encode_pitch(F / R),
                       most_bytes = encode_bytes(C, F, H, R);
  alignas(128) unsigned char ring[slots][encode_piece_bytes(C)];
  alignas(128) unsigned char x[2][encode_rows * pitch];  // all rows of the tile: behind an MLP, and behind attention
  float parts[R][own][C];                                // of the block's rows, from each block
  union {
    float results[encode_attending][encode_rows][encode_result_pitch];  // of the warps of attention
    alignas(16) unsigned char hidden[encode_rows * hidden_pitch];       // the block's hidden values
  };
  alignas(16) unsigned char attended[2 * encode_rows * encode_head];  // of one head
  alignas(16) unsigned char heads[encode_own_heads(H, R)][encode_head_tile_bytes];
  alignas(16) std::uint16_t row[own][C];       // the block's rows, normalised
  float2 tops[encode_attending][encode_rows];  // maximum of scores in units of log2, and sum of their powers of two
  float2 moments[own][encode_warps];           // mean of a warp's columns, and sum of squared differences from it
  double squares[encode_warps];
  std::int32_t starts[encode_most_texts + 1], last;            // last: whether the block ends last
  std::int32_t first_key[encode_rows], end_keys[encode_rows];  // the rows that a row attends to
  std::uint64_t full[slots], empty[slots], summed, gathered[2];
};

/// sums += the products of 16 rows with eight lines of weights, over 32 elements. `low` and `high`: the thread's chunks of rows lane / 4 and lane / 4 + 8.
__device__ inline void multiply_chunk(const uint4& low, const uint4& high, const uint4& w, float (&first)[4], float (&second)[4]) {
  const std::uint32_t x[4] = {low.x, high.x, low.y, high.y}, y[4] = {low.z, high.z, low.w, high.w}, v[2] = {w.x, w.y}, u[2] = {w.z, w.w};
  mma_16x8x16_bf16(first, x, v);
  mma_16x8x16_bf16(second, y, u);
}
__device__ inline uint4 chunk_at(const unsigned char* p) { return *reinterpret_cast<const uint4*>(p); }

/// The place of a thread, and the phases of what it waits for.
template <int C, int F, int H, int R> struct encode_pipe {
  using memory = encode_memory<C, F, H, R>;
  static constexpr int slots = encode_slots(R), own = encode_own_rows(R), pitch = encode_pitch(C), hidden = F / R,
                       pieces = hidden / encode_lines, own_heads = encode_own_heads(H, R), head_blocks = R < H ? R : H,
                       piece_bytes = encode_piece_bytes(C), groups = C / 32;
  static_assert(C == 32 * encode_warps && C / H == encode_head && F % (32 * R) == 0 && pieces * encode_lines == hidden);
  const encode_arguments& a;
  memory& s;
  int t = int(threadIdx.x), lane = t % 32, warp = t / 32, g = lane / 4, q = lane % 4;
  int rank = int(cluster_rank()), tile = int(blockIdx.x) / R;
  int piece = 0;  // pieces of weights so far
  int sums = 0, gathers[2] = {0, 0};
  int in = 0;  // which of the two has the rows
  __device__ encode_pipe(const encode_arguments& all, memory& shared) : a(all), s(shared) {}

  /// The rows of the tile that this block owns are rank + R i.
  __device__ int own_count() const { return (encode_rows - rank + R - 1) / R; }
  __device__ std::uint32_t bytes_of_parts(int sources) const { return std::uint32_t(sources * own_count() * 4 * C); }
  static constexpr std::uint32_t gathered_bytes = encode_rows * 2 * C;

  __device__ void begin() {
    if (t == 0) {
#pragma unroll
      for (int i = 0; i < slots; ++i) barrier_init(shared_address(&s.full[i]), 1), barrier_init(shared_address(&s.empty[i]), encode_warps);
      barrier_init(shared_address(&s.summed), 1);
#pragma unroll
      for (int i = 0; i < 2; ++i) barrier_init(shared_address(&s.gathered[i]), 1);
      barrier_init_fence();
      barrier_expect(shared_address(&s.summed), bytes_of_parts(head_blocks));
#pragma unroll
      for (int i = 0; i < 2; ++i) barrier_expect(shared_address(&s.gathered[i]), gathered_bytes);
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
      const encode_layer& w = a.layers[stage / 2 - a.base];
      if (stage % 2 == 0) {
        for (int h = rank; h < H; h += R)
          for (int kind = 0; kind < 3; ++kind) ask(w.qkv, 0, kind * C + h * encode_head);
        continue;
      }
      for (int h = rank; h < H; h += R) ask(w.projection, h * encode_head, 0);
      for (int i = 0; i < pieces; ++i) ask(w.up, 0, rank * hidden + i * encode_lines);
      for (int i = 0; i < pieces; ++i) ask(w.down, rank * hidden + i * encode_lines, 0);
    }
  }
  __device__ void wait_for_piece(int n) { barrier_wait(shared_address(&s.full[n % slots]), std::uint32_t(n / slots) & 1); }
  /// The warp needs the next `count` pieces no more.
  __device__ void release(int count) {
    __syncwarp();
    if (lane == 0)
      for (int i = 0; i < count; ++i) barrier_arrive(shared_address(&s.empty[(piece + i) % slots]));
    piece += count;
  }

  /// The products of the rows with eight lines from line 8 `column` on of a piece of 32 lines.
  __device__ void multiply_lines(int n, int column, float (&sum)[4]) {
    wait_for_piece(n);
    const unsigned char *w = s.ring[n % slots] + (8 * column + g) * 64 + 16 * q, *x = s.x[in] + g * pitch + 16 * q;
    float all[2][4] = {};
#pragma unroll
    for (int i = 0; i < groups; ++i)
      multiply_chunk(chunk_at(x + 64 * i), chunk_at(x + 8 * pitch + 64 * i), chunk_at(w + i * encode_lines * 64), all[0], all[1]);
#pragma unroll
    for (int k = 0; k < 4; ++k) sum[k] = all[0][k] + all[1][k];
  }
  /// Adds the products of rows of 32 elements with the warp's 32 lines of the next piece of C lines: of two tiles, the thread has four neighbouring columns, from
  /// 32 warp + 4 q on of the first two.
  __device__ void multiply_columns(const unsigned char* x, int x_pitch, float (&sums_of)[4][4]) {
    wait_for_piece(piece);
    const unsigned char* w = s.ring[piece % slots] + (32 * warp + g / 2 * 4 + g % 2) * 64 + 16 * q;
    const uint4 low = chunk_at(x + g * x_pitch + 16 * q), high = chunk_at(x + (g + 8) * x_pitch + 16 * q);
#pragma unroll
    for (int k = 0; k < 4; ++k) multiply_chunk(low, high, chunk_at(w + (k / 2 * 16 + k % 2 * 2) * 64), sums_of[k], sums_of[k]);
    release(1);
  }
  /// Sends the thread's parts of all rows to the blocks that own them.
  __device__ void send_parts(const float (&sums_of)[4][4]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = g + 8 * half;
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        const float4 four{sums_of[2 * k][2 * half], sums_of[2 * k][2 * half + 1], sums_of[2 * k + 1][2 * half],
                          sums_of[2 * k + 1][2 * half + 1]};
        send(&s.parts[rank][row / R][32 * warp + 16 * k + 4 * q], shared_address(&s.summed), std::uint32_t(row % R), four);
      }
    }
  }
};

}  // namespace isotope::cuda::gpu
