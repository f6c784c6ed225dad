#pragma once
// The shared memory of a block of native/decode_step_few_hopper.cu, and the first product of a half of a layer: the blocks of a cluster divide the columns of the rows, as in few_rows.cuh. Rows
// are the first operand of mma.sync, the numbers of bf16 in its upper eight rows and what is left of them in the lower eight, and 16 lines of weights the second one.
#include "decode/few_rows.cuh"
#include "decode/step_few.h"
#include "decode/step_few_words.cuh"
#include "decode/step_lines.cuh"

namespace isotope::cuda::gpu {

inline constexpr int step_few_add_warps = 6, step_few_adders = 32 * step_few_add_warps, step_few_columns_warps = 12;
/// Barriers of the block beside those of one row: of the warps that pass parts on and those that add them up, and of the query, which the latter finish.
inline constexpr int step_few_passed = 4, step_few_query = 5;
/// Copies of cached rows that there is memory for: one for each pair of warps, which so sees all copies to its memory and can tell them apart by the parity of their number.
inline constexpr int step_few_chunks = decode_step_own_chunks + decode_step_lent_chunks;
static_assert(2 * step_few_chunks == step_main_warps);

/// The row that a block attends for, and its share of the cached positions. A row has one, two or four blocks of each cluster.
struct decode_step_few_place {
  int N, splits, row, split, slot, own, first, count;  // count: 0 for a row that is idle, or is none
  bool there, idle;
  __device__ decode_step_few_place(const decode_step& a, int rank) {
    N = a.rows.N;
    splits = N > 4 ? 1 : N > 2 ? 2 : N > 1 ? 4 : 8;
    row = rank / splits, split = rank % splits;
    there = row < N;
    slot = there ? pointer<const std::int32_t>(a.sequence)[row] : -1, own = there ? pointer<const std::int32_t>(a.position)[row] : -1;
    idle = slot < 0 || slot >= a.B || own < 0 || own >= a.T;
    const int all = idle ? 0 : own, each = (all + splits - 1) / splits;
    first = min(split * each, all);
    count = min(each, all - first);
  }
  __device__ int chunks() const { return (count + decode_step_chunk - 1) / decode_step_chunk; }
  /// The row of caches of (B H T) rows that the first position has.
  __device__ int cached_row(const decode_step& a, int heads, int head) const { return ((idle ? 0 : slot) * heads + head) * a.T + first; }
};
/// A block's part in the exchange of rows' own keys and values, which is the same in all layers.
struct decode_step_few_own {
  bool together;          // whether rows have a sequence in common
  bool last;              // whether the block's row is the last one with its place
  std::uint32_t counted;  // bit m: row m's key and value count for the block's row
  __device__ decode_step_few_own(const decode_step& a, const decode_step_few_place& p, std::int32_t (&places)[decode_most_rows]) {
    const int lane = int(threadIdx.x) % 32;
    const bool row = lane < p.N;
    const int slot = row ? pointer<const std::int32_t>(a.sequence)[lane] : -1 - lane,
              place = row ? pointer<const std::int32_t>(a.position)[lane] : -1;
    const std::uint32_t same = __match_any_sync(all_lanes, slot);  // by all lanes, whatever their slot
    together = __any_sync(all_lanes, slot >= 0 && __popc(same) > 1);
    last = !p.idle && !__any_sync(all_lanes, lane > p.row && slot == p.slot && place == p.own);
    const int mine = slot >= 0 && slot == p.slot && place >= 0 ? place : -1;
    const std::uint32_t there_too = __match_any_sync(all_lanes, mine >= 0 ? mine : -1 - lane);
    const bool counts = mine >= 0 && mine <= p.own && (there_too & ~((2u << lane) - 1u)) == 0;
    counted = __ballot_sync(all_lanes, counts && !p.idle && p.split == 0);
    if (threadIdx.x < decode_most_rows) places[lane] = mine;
  }
};

template <int C> struct decode_step_few_memory {
  static constexpr int own = C / decode_ranks, heads = C / decode_head, hidden = 4 * C / heads, lines = 3 * decode_head,
                       share = hidden / decode_ranks, pitch = 2 * own, box = 64 * own;  // bytes of a box of 32 columns
  static constexpr int line_of_h = decode_pitch(hidden), line_of_y = decode_pitch(decode_head), most_bytes = decode_step_few_bytes(C);
  static_assert(pitch % 128 == 64, "rows of weights one after the other start in different halves of the banks");
  alignas(1024) unsigned char weight[lines * pitch];
  unsigned char up[hidden * pitch];
  unsigned char projection[2 * box];
  unsigned char down[hidden / 32 * box];
  alignas(1024) unsigned char cached[decode_step_own_chunks * decode_step_chunk_bytes];
  alignas(
      1024) unsigned char rows[2][decode_most_rows * 2 * decode_head];  // keys and values of the rows themselves, as if they were cached
  uint4 gain[2][own / 8], shift[2][own / 8];
  alignas(16) unsigned char x[2][decode_most_rows * pitch];  // gain times the rows, rounded to bf16, and what is left of it
  alignas(16) float residual[decode_most_rows][own];
  // Sums of lines over the columns of each block: of weight times gain, of weight times shift, and products with rows. In the attention half, of the block's row.
  alignas(16) float gains[decode_ranks][lines], shifts[decode_ranks][lines], up_gains[decode_ranks][share], up_shifts[decode_ranks][share];
  alignas(16) union {
    float of_line[decode_ranks][lines];
    float of_row[decode_ranks][decode_most_rows][share];
  } products;
  float2 moments[decode_ranks],
      up_moments[decode_ranks][decode_most_rows];  // of columns of a block: mean, and sum of squared differences from it
  alignas(16) std::uint16_t query[decode_head];
  struct alignas(16) attended {
    alignas(16) float of_warp[step_main_warps][decode_head + 4];  // the elements of all warps that a warp adds up are in different banks
    alignas(16) float sums[decode_ranks][decode_head];
    float2 tops[step_main_warps], of[decode_ranks];
  } head;
  alignas(16) unsigned char y[decode_most_rows * line_of_y];  // attended rows, rounded to bf16
  decode_step_few_place place;
  decode_step_few_own own_row;
  std::uint32_t run;                      // how often words were written before this launch
  std::int32_t places[decode_most_rows];  // positions of the rows that have the sequence of the block's row; -1: another one
  std::uint64_t full[step_slots], empty[step_slots], cached_full[step_few_chunks], cached_empty[step_few_chunks];
  std::uint64_t prepared[2], arrived[2], exchanged, summed, activated, gathered, returned, table[decode_step_tiles];
  // Rounded hidden values of the MLP half, in the memory of the attention half.
  __device__ unsigned char* h() { return reinterpret_cast<unsigned char*>(&head); }
  static_assert(sizeof(attended) >= std::size_t(decode_most_rows) * line_of_h);
  __device__ unsigned char* chunk(int k) {
    return k < decode_step_own_chunks ? cached + k * decode_step_chunk_bytes
                                      : weight + (k - decode_step_own_chunks) * decode_step_chunk_bytes;
  }
  static_assert(decode_step_lent_chunks * decode_step_chunk_bytes <= lines * pitch);
  // Behind the layers, in the memory of cached rows: the residual rows, and the normalised ones. Rows of the table, in the memory of all weights.
  static constexpr int line_of_row = decode_pitch(C), tile_bytes = 16 * 2 * C;
  __device__ float (&row(int n))[C] { return *reinterpret_cast<float(*)[C]>(cached + n * 4 * C); }
  __device__ uint4* normalised(int n) { return reinterpret_cast<uint4*>(cached + decode_most_rows * 4 * C + n * line_of_row); }
  static_assert(decode_most_rows * (4 * C + line_of_row) <= decode_step_own_chunks * decode_step_chunk_bytes);
  __device__ unsigned char* tile(int k) { return weight + k * tile_bytes; }
};

/// Where chunk c of layer i is, and how often something was copied there before.
struct decode_step_few_chunk {
  int place, uses;
  __device__ decode_step_few_chunk(int i, int c, int chunks) {
    place = c % step_few_chunks;
    uses = i * uses_of(place, chunks) + c / step_few_chunks;
  }
  /// Of a layer.
  __device__ static int uses_of(int place, int chunks) { return chunks > place ? (chunks - place - 1) / step_few_chunks + 1 : 0; }
};

/// x, as if it were unknown before. What follows from it is computed again in each half: of a loop over halves, the compiler would keep all of it, and not in registers.
__device__ inline int known_here(int x) {
#if !defined(ISOTOPE_EMULATED_DEVICE)
  asm volatile("" : "+r"(x));
#endif
  return x;
}
__device__ inline int thread_of_half() {
  const int t = known_here(int(threadIdx.x));
  __builtin_assume(t >= 0 && t < decode_step_few_threads);
  return t;
}
/// sums[k] += products of the rows of the first operand with line lane / 4 of the second one, whose chunks are Apart bytes apart: see mma_16x8x16_bf16.
template <int Steps, int Apart>
__device__ inline void multiply_rows_by(const unsigned char* w, const uint4 (&high)[Steps], const uint4 (&low)[Steps], float (&sums)[4]) {
  float two[2][4] = {};
#pragma unroll
  for (int i = 0; i < Steps; ++i) {
    const uint4 b = *reinterpret_cast<const uint4*>(w + Apart * i);
    const std::uint32_t first[4] = {high[i].x, low[i].x, high[i].y, low[i].y}, second[4] = {high[i].z, low[i].z, high[i].w, low[i].w};
    const std::uint32_t u[2] = {b.x, b.y}, v[2] = {b.z, b.w};
    mma_16x8x16_bf16(two[0], first, u);
    mma_16x8x16_bf16(two[1], second, v);
  }
#pragma unroll
  for (int k = 0; k < 4; ++k) sums[k] = two[0][k] + two[1][k];
}

/// The first product of Half 0 (attention) or 1 (MLP): a warp has 16 lines.
template <int C, int Half> struct decode_step_few_first {
  using memory = decode_step_few_memory<C>;
  static constexpr int own = memory::own, lines = Half == 0 ? memory::lines : memory::hidden, steps = own / 32, warps = lines / 16;
  static constexpr step_slot slot = Half == 0 ? slot_weight : slot_up;
  static_assert(warps <= step_main_warps && memory::share == 32);
  __device__ static std::uint32_t constant_bytes(const decode_step_few_place& p) {
    return Half == 1 ? decode_ranks * memory::share * 8 : p.there ? decode_ranks * lines * 8 : 0;
  }
  __device__ static std::uint32_t product_bytes(const decode_step_few_place& p) {
    return Half == 1 ? std::uint32_t(decode_ranks * p.N * (memory::share * 4 + 8)) : p.there ? decode_ranks * (lines * 4 + 8) : 0;
  }
  /// Products of row lane / 4 with lines 4 (lane % 4) and on of the warp's 16.
  __device__ static float4 multiply_lines(const memory& s, int t, const uint4 (&high)[steps], const uint4 (&low)[steps]) {
    const int lane = t % 32, warp = t / 32, n = lane / 4;
    const unsigned char* w = (Half == 0 ? s.weight : s.up) + (16 * warp + 4 * (n / 2) + n % 2) * memory::pitch + 16 * (lane % 4);
    float two[2][4];
    multiply_rows_by<steps, 64>(w, high, low, two[0]);
    multiply_rows_by<steps, 64>(w + 2 * memory::pitch, high, low, two[1]);
    return {two[0][0] + two[0][2], two[0][1] + two[0][3], two[1][0] + two[1][2], two[1][1] + two[1][3]};
  }
  /// Sends the sums without rows to the blocks that finish the lines.
  __device__ static void prepare(memory& s, int t, const decode_step_few_place& p, int rank, std::uint32_t parity) {
    const int lane = t % 32, warp = t / 32, n = lane / 4, quad = lane % 4;
    barrier_wait(shared_address(&s.full[slot]), parity);
    if (warp >= warps) return;
    uint4 both[steps], none[steps];
#pragma unroll
    for (int i = 0; i < steps; ++i) {
      both[i] = n < 2 ? (n == 0 ? s.gain[Half] : s.shift[Half])[4 * i + quad] : uint4{0, 0, 0, 0};
      none[i] = {0, 0, 0, 0};
    }
    const float4 sums = multiply_lines(s, t, both, none);
    const std::uint32_t at = shared_address(&s.prepared[Half]);
    if constexpr (Half == 0) {  // eight blocks have the lines of their rows
      const auto of = [&](int from) {
        return float4{__shfl_sync(all_lanes, sums.x, from), __shfl_sync(all_lanes, sums.y, from), __shfl_sync(all_lanes, sums.z, from),
                      __shfl_sync(all_lanes, sums.w, from)};
      };
      const float4 gains = of(quad), shifts = of(4 + quad);
      if (n / p.splits >= p.N) return;
      send(&s.gains[rank][16 * warp + 4 * quad], at, std::uint32_t(n), gains);
      send(&s.shifts[rank][16 * warp + 4 * quad], at, std::uint32_t(n), shifts);
    } else {  // a block has 32 of them
      if (n < 2) send(&(n == 0 ? s.up_gains : s.up_shifts)[rank][16 * (warp % 2) + 4 * quad], at, std::uint32_t(warp / 2), sums);
    }
  }
  /// Multiplies the block's columns of the rows and sends the sums.
  __device__ static void multiply(memory& s, int t, const decode_step_few_place& p, int rank) {
    const int lane = t % 32, warp = t / 32, n = lane / 4, quad = lane % 4;
    if (warp < warps) {
      uint4 high[steps], low[steps];
#pragma unroll
      for (int i = 0; i < steps; ++i) {
        high[i] = *reinterpret_cast<const uint4*>(s.x[0] + n * memory::pitch + 16 * quad + 64 * i);
        low[i] = *reinterpret_cast<const uint4*>(s.x[1] + n * memory::pitch + 16 * quad + 64 * i);
      }
      const float4 sums = multiply_lines(s, t, high, low);
      const std::uint32_t at = shared_address(&s.arrived[Half]);
      if (n < p.N) {
        if constexpr (Half == 0) {
#pragma unroll 1
          for (int k = 0; k < p.splits; ++k)
            send(&s.products.of_line[rank][16 * warp + 4 * quad], at, std::uint32_t(n * p.splits + k), sums);
        } else {
          send(&s.products.of_row[rank][n][16 * (warp % 2) + 4 * quad], at, std::uint32_t(warp / 2), sums);
        }
      }
    }
    warp_arrive(shared_address(&s.empty[slot]));
  }
  /// A line without its bias of the block's row, or of row n one of the block's lines, of normalised rows. begin: of one thread, which starts the barriers' next phases.
  __device__ static float finish(memory& s, bool begin, const decode_step_few_place& p, int n, int line, std::uint32_t parity,
                                 float epsilon) {
    wait_for_sent(shared_address(&s.prepared[Half]), parity);
    wait_for_sent(shared_address(&s.arrived[Half]), parity);
    if (begin) {
      barrier_expect(shared_address(&s.prepared[Half]), constant_bytes(p));
      barrier_expect(shared_address(&s.arrived[Half]), product_bytes(p));
    }
    if constexpr (Half == 0)
      return product_of_blocks<C>(
          epsilon, [&](int r) { return s.moments[r]; }, [&](int r) { return s.products.of_line[r][line]; },
          [&](int r) { return float2{s.gains[r][line], s.shifts[r][line]}; });
    else
      return product_of_blocks<C>(
          epsilon, [&](int r) { return s.up_moments[r][n]; }, [&](int r) { return s.products.of_row[r][n][line]; },
          [&](int r) { return float2{s.up_gains[r][line], s.up_shifts[r][line]}; });
  }
};

}  // namespace isotope::cuda::gpu
