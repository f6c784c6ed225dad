#pragma once
// How matmul_f32_hopper.cu divides its shared memory, splits numbers of f32, and finishes sums.
#include "../device/wgmma.cuh"
#include "../gemm/chain_values.cuh"
#include "matmul_f32_hopper.h"
#include "matmul_hopper_parts.cuh"

namespace isotope::cuda::gpu::hopper {

/// Three pairs of bf16 whose sums are the two numbers exactly, nearest first.
__device__ __forceinline__ void split_pair(float x, float y, std::uint32_t& p1, std::uint32_t& p2, std::uint32_t& p3) {
  p1 = bf16_pair(x, y);
  x = __fsub_rn(x, __uint_as_float(p1 << 16)), y = __fsub_rn(y, __uint_as_float(p1 & 0xffff0000u));
  p2 = bf16_pair(x, y);
  x = __fsub_rn(x, __uint_as_float(p2 << 16)), y = __fsub_rn(y, __uint_as_float(p2 & 0xffff0000u));
  p3 = bf16_pair(x, y);
}

/// Addresses in shared memory: two stages with the tile of a in f32 and those of b's planes, then sums, then barriers.
struct f32_layout {
  static constexpr int BN = 128, stages = 2;
  static constexpr int a_bytes = BM * BK * 4, plane_bytes = BN * BK * 2, stage_bytes = a_bytes + 3 * plane_bytes;
  static constexpr int sums_bytes = 64 * BN * 4;  // of one warpgroup
  static constexpr int shared_bytes = stages * stage_bytes + 2 * sums_bytes + 64;
  std::uint32_t start;

  __device__ __forceinline__ explicit f32_layout(std::uint32_t shared) : start(shared) {}
  __device__ __forceinline__ std::uint32_t a(int stage) const { return start + std::uint32_t(stage * stage_bytes); }
  __device__ __forceinline__ std::uint32_t b(int stage) const { return a(stage) + a_bytes; }
  __device__ __forceinline__ static int sums(int group) { return stages * stage_bytes + group * sums_bytes; }
  __device__ __forceinline__ std::uint32_t filled(int stage) const { return start + std::uint32_t(sums(2) + 8 * stage); }
  __device__ __forceinline__ std::uint32_t emptied(int stage) const { return start + std::uint32_t(sums(2) + 8 * (stages + stage)); }
};

/// The left operand of one product of 16 steps of K: the parts of a thread's eight elements.
struct split_fragment {
  std::uint32_t of[3][4];
};

/// Reads and splits the elements of steps 16 k to 16 k + 15 of the rows of warpgroup `group`.
template <bool CrossA> __device__ __forceinline__ void read_fragment(std::uint32_t a, int group, int k, split_fragment& f) {
  const int lane = int(threadIdx.x % 32), row = 64 * group + int(threadIdx.x % 128) / 32 * 16 + lane / 4, step = 16 * k + lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int m = row + i % 2 * 8, s = step + i / 2 * 8;
    float x, y;
    if constexpr (CrossA) {
      const auto word = [&](int at) {
        return load_shared_4(a + std::uint32_t(m / 32 * 8192 + at * 128 + ((m % 32 / 4) ^ (at % 8)) * 16 + m % 4 * 4));
      };
      x = word(s), y = word(s + 1);
    } else {
      const float2 two = load_shared_8(a + std::uint32_t(s / 32 * 16384 + m * 128 + ((s % 32 / 4) ^ (m % 8)) * 16 + s % 4 * 4));
      x = two.x, y = two.y;
    }
    split_pair(x, y, f.of[0][i], f.of[1][i], f.of[2][i]);
  }
}

/// The sum of steps first to end - 1 of K of one element, by multiply-adds.
__device__ inline __attribute__((noinline)) float multiply_adds(const gemm& g, int m, int n, int first, int end, int a_cross, int b_cross) {
  const float* a = pointer<const float>(g.a.at) + (a_cross != 0 ? first * g.a.line + m : m * g.a.line + first);
  const float* b = pointer<const float>(g.b.at) + (b_cross != 0 ? first * g.b.line + n : n * g.b.line + first);
  const std::int64_t to_a = a_cross != 0 ? g.a.line : 1, to_b = b_cross != 0 ? g.b.line : 1;
  float sum = 0.0f;
#pragma unroll 1
  for (int k = first; k < end && !(sum != sum); ++k, a += to_a, b += to_b) sum = fmaf(*a, *b, sum);
  return sum;
}

}  // namespace isotope::cuda::gpu::hopper
