#pragma once
// The shared memory of a block of native/decode_step_hopper.cu, and the first product of a half of a layer.
#include "decode/attend.cuh"
#include "decode/step.h"
#include "device/cluster.cuh"

namespace isotope::cuda::gpu {

inline constexpr int step_main_warps = 16, step_main = 32 * step_main_warps, step_add_warps = 3, step_adders = 32 * step_add_warps;
/// Barriers of the block: of the main warps, of x, of the adders; pairs of warps from step_pair on.
inline constexpr int step_all_main = 1, step_x = 2, step_all_adders = 3, step_pair = 4;

/// What comes in copies: weights with their norm, cached rows, the projection, weights of hidden values with their norm, and their projection.
enum step_slot { slot_weight, slot_cache, slot_projection, slot_up, slot_down, step_slots };

/// Tiles of 16 rows of the table in shared memory.
inline constexpr int decode_step_tiles = 6;

template <int C> struct decode_step_memory {
  static constexpr int own = C / decode_ranks, heads = C / decode_head, hidden = 4 * C / heads, lines = 3 * decode_head, pitch = 2 * own,
                       box = 64 * own;  // bytes of a box of 32 columns
  static constexpr int most_bytes = decode_step_bytes(C);
  static_assert(pitch % 128 == 64, "rows of weights one after the other start in different halves of the banks");
  alignas(128) unsigned char weight[lines * pitch];
  unsigned char up[hidden * pitch];
  unsigned char projection[2 * box];
  unsigned char down[hidden / 32 * box];
  std::uint16_t keys[decode_step_positions][decode_head], values[decode_step_positions][decode_head];
  uint4 gain[2][own / 8], shift[2][own / 8];
  uint4 x[2][own / 8];                                            // g x, rounded to bf16, and what is left of it
  alignas(16) float2 constants[decode_ranks * (lines + hidden)];  // of each block, of each line: sums of weight g, and of weight b
  alignas(16) float products[decode_ranks * (lines + hidden)];
  alignas(16) float2 moments[2][decode_ranks];
  alignas(16) float residual[own];
  struct alignas(16) attended {
    alignas(16) float of_warp[step_main_warps][decode_head];
    float2 tops[step_main_warps];
    alignas(16) float sums[decode_ranks][decode_head];
    float2 of[decode_ranks];
    std::uint64_t summed;
  } head;
  alignas(16) float query[decode_head];
  uint4 y[decode_head / 8];
  std::uint64_t full[step_slots], empty[step_slots], arrived[2], prepared[2], gathered, table[decode_step_tiles];
  // Of the MLP half, in the memory of the attention half.
  __device__ uint4* h() { return reinterpret_cast<uint4*>(&head.of_warp[0]); }
  __device__ float* second() { return &head.of_warp[step_main_warps / 2][0]; }
  // Behind the layers, in the memory of the first product's sums: the whole residual row, and the normalised one.
  __device__ float (&row())[C] { return *reinterpret_cast<float(*)[C]>(products); }
  __device__ uint4* normalised() { return reinterpret_cast<uint4*>(products + C); }
  // Rows of the table, in the memory of all weights.
  static constexpr int tile_bytes = 16 * 2 * C;
  __device__ unsigned char* tile(int k) { return weight + k * tile_bytes; }
};

/// Where a position's cached rows are divided: blocks have an eighth of them, the row's own included.
struct decode_step_place {
  int slot, own, first, end;
  bool idle;
  __device__ decode_step_place(const decode_step& a, int rank) {
    slot = *pointer<const std::int32_t>(a.sequence), own = *pointer<const std::int32_t>(a.position);
    idle = slot < 0 || slot >= a.B || own < 0 || own >= a.T;
    const int count = idle ? 0 : own + 1, each = (count + decode_ranks - 1) / decode_ranks;
    first = rank * each < count ? rank * each : count;
    end = first + each < count ? first + each : count;
  }
  __device__ int cached() const {
    const int last = end < own ? end : own;
    return idle || last < first ? 0 : last - first;
  }
  __device__ bool has_own() const { return !idle && first <= own && own < end; }
};

/// Products of 16 rows of weights with the columns of a second operand: lanes of column n = lane / 4 give it, or null for zeros. Of step i, Apart bytes on, 32 elements are added.
/// sums: of rows lane / 4 and that plus 8, columns 2 (lane % 4) and the next one.
template <int Steps, int Pitch, int Apart>
__device__ inline void multiply_tile(const unsigned char* w, const uint4* column, float (&sums)[4]) {
  const int lane = int(threadIdx.x) % 32, quad = lane % 4;
  w += lane / 4 * Pitch + 16 * quad;
  float two[2][4] = {};
#pragma unroll
  for (int i = 0; i < Steps; ++i) {
    const uint4 u = *reinterpret_cast<const uint4*>(w + i * Apart), v = *reinterpret_cast<const uint4*>(w + i * Apart + 8 * Pitch);
    const uint4 x = column != nullptr ? column[4 * i + quad] : uint4{0, 0, 0, 0};
    const std::uint32_t a[4] = {u.x, v.x, u.y, v.y}, b[4] = {u.z, v.z, u.w, v.w}, c[2] = {x.x, x.y}, d[2] = {x.z, x.w};
    mma_16x8x16_bf16(two[0], a, c);
    mma_16x8x16_bf16(two[1], b, d);
  }
#pragma unroll
  for (int k = 0; k < 4; ++k) sums[k] = two[0][k] + two[1][k];
}
/// Counts the warp at a barrier that its lanes' reads have to come before.
__device__ inline void warp_arrive(std::uint32_t barrier) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) barrier_arrive(barrier);
}

/// The first product of a half, as in one_row.cuh: lines of Half 0 (attention) or 1 (MLP).
template <int C, int Half> struct decode_step_lines {
  using memory = decode_step_memory<C>;
  static constexpr int own = memory::own, lines = Half == 0 ? memory::lines : memory::hidden,
                       start = Half == 0 ? 0 : decode_ranks * memory::lines;
  static constexpr step_slot slot = Half == 0 ? slot_weight : slot_up;
  static constexpr std::uint32_t constant_bytes = decode_ranks * lines * 8, product_bytes = decode_ranks * (lines * 4 + 8);
  static_assert(lines / 16 <= step_main_warps);

  __device__ static float2* constants(memory& s, int rank) { return s.constants + start + rank * lines; }
  __device__ static float* products(memory& s, int rank) { return s.products + start + rank * lines; }
  __device__ static const unsigned char* tile(const memory& s) {
    return (Half == 0 ? s.weight : s.up) + int(threadIdx.x) / 32 * 16 * memory::pitch;
  }
  /// Sends the sums without x.
  __device__ static void prepare(memory& s, int rank, std::uint32_t parity) {
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32, n = lane / 4;
    barrier_wait(shared_address(&s.full[slot]), parity);
    if (warp >= lines / 16) return;
    float sums[4];
    multiply_tile<own / 32, memory::pitch, 64>(tile(s), n == 0 ? s.gain[Half] : n == 1 ? s.shift[Half] : nullptr, sums);
    const int pair = lane % 4;
    float4 low, high;
    low.x = __shfl_sync(all_lanes, sums[0], 8 * pair), low.y = __shfl_sync(all_lanes, sums[1], 8 * pair);
    low.z = __shfl_sync(all_lanes, sums[0], 8 * pair + 4), low.w = __shfl_sync(all_lanes, sums[1], 8 * pair + 4);
    high.x = __shfl_sync(all_lanes, sums[2], 8 * pair), high.y = __shfl_sync(all_lanes, sums[3], 8 * pair);
    high.z = __shfl_sync(all_lanes, sums[2], 8 * pair + 4), high.w = __shfl_sync(all_lanes, sums[3], 8 * pair + 4);
    float2* to = constants(s, rank) + 16 * warp + 2 * pair;
    send(&to->x, shared_address(&s.prepared[Half]), std::uint32_t(lane / 4), low);
    send(&(to + 8)->x, shared_address(&s.prepared[Half]), std::uint32_t(lane / 4), high);
  }
  /// Multiplies the block's columns and sends the sums.
  __device__ static void multiply(memory& s, int rank) {
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32, n = lane / 4, quad = lane % 4;
    if (warp < lines / 16) {
      float sums[4];
      multiply_tile<own / 32, memory::pitch, 64>(tile(s), n < 2 ? s.x[n < 2 ? n : 0] : nullptr, sums);
      const float low = sums[0] + sums[1], above = __shfl_sync(all_lanes, sums[2] + sums[3], lane - quad), mine = quad == 1 ? above : low;
      // Line l of the tile is in lane 4 (l % 8) + l / 8; a lane sends lines 4 quad and on.
      float4 all;
      const int from = 16 * (quad % 2) + quad / 2;
      all.x = __shfl_sync(all_lanes, mine, from), all.y = __shfl_sync(all_lanes, mine, from + 4);
      all.z = __shfl_sync(all_lanes, mine, from + 8), all.w = __shfl_sync(all_lanes, mine, from + 12);
      send(products(s, rank) + 16 * warp + 4 * quad, shared_address(&s.arrived[Half]), std::uint32_t(n), all);
    }
    warp_arrive(shared_address(&s.empty[slot]));
  }
  /// Line threadIdx.x without its bias, of the normalised row.
  __device__ static float finish(memory& s, std::uint32_t parity, float epsilon) {
    const int t = int(threadIdx.x);
    wait_for_sent(shared_address(&s.prepared[Half]), parity);
    float2 constant{0.0f, 0.0f};
#pragma unroll
    for (int r = 0; r < decode_ranks; ++r) {
      const float2 c = constants(s, r)[t];
      constant.x += c.x, constant.y += c.y;
    }
    wait_for_sent(shared_address(&s.arrived[Half]), parity);
    if (t == 0) {
      barrier_expect(shared_address(&s.prepared[Half]), constant_bytes);
      barrier_expect(shared_address(&s.arrived[Half]), product_bytes);
    }
    float mean = 0.0f, square = 0.0f, between = 0.0f, product = 0.0f;
#pragma unroll
    for (int r = 0; r < decode_ranks; ++r) {
      mean += s.moments[Half][r].x;
      square += s.moments[Half][r].y;
      product += products(s, r)[t];
    }
    mean *= 1.0f / decode_ranks;
#pragma unroll
    for (int r = 0; r < decode_ranks; ++r) {
      const float d = s.moments[Half][r].x - mean;
      between = fmaf(d, d, between);
    }
    const float scale = rsqrtf(fmaf(between, float(own), square) * (1.0f / C) + epsilon);
    return fmaf(scale, product - mean * constant.x, constant.y);
  }
};

/// Waits until the memory of a slot has been read in the layer before, and says how many bytes come. Returns the barrier of their arrival; by one thread.
template <class Memory> __device__ inline std::uint32_t begin_copies(Memory& s, int slot, int layer, std::uint32_t bytes) {
  if (layer > 0) barrier_wait(shared_address(&s.empty[slot]), std::uint32_t(layer - 1) & 1);
  barrier_expect(shared_address(&s.full[slot]), bytes);
  return shared_address(&s.full[slot]);
}
/// Starts the copies of a half's norm, of the block's columns.
template <class Memory> __device__ inline void load_norm(Memory& s, const decode_step_layer& l, int half, int rank, std::uint32_t barrier) {
  constexpr int own = Memory::own;
  bulk_load(s.gain[half], l.norm_weight[half] + 2 * rank * own, 2 * own, barrier);
  bulk_load(s.shift[half], l.norm_bias[half] + 2 * rank * own, 2 * own, barrier);
}
/// Starts the copy of the block's tile i of the table into slot k; by one thread.
template <class Memory> __device__ inline void load_tile(const decode_step& a, Memory& s, int i, int k) {
  const int row = 16 * (int(blockIdx.x) + i * int(gridDim.x));
  if (row >= a.V) return;
  barrier_expect(shared_address(&s.table[k]), Memory::tile_bytes);
  tensor_load(shared_address(s.tile(k)), a.table_boxes, 0, row, 0, shared_address(&s.table[k]));
}

}  // namespace isotope::cuda::gpu
