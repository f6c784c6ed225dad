#pragma once
// Sums of y's columns over the rows of a tile, which the finishing warps of matmul_hopper.cu gather from the values that they store. The order
// of the terms is fixed: the rows of a lane, the lanes of a warp, the warps.
#include "matmul_hopper_parts.cuh"

namespace isotope::cuda::gpu::hopper {

/// The sums of a lane, which has 8 adjacent columns. `lanes` lanes share a row.
template <int BN, int Warps> class column_sums {
 public:
  static constexpr int lanes = BN / 8, bytes = 2 * Warps * BN * 4;  // of shared memory: two buffers

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (float& x : of_) x = 0.0f;
  }
  /// Adds a row's values, in bf16.
  __device__ __forceinline__ void add(uint4 y) {
    const std::uint32_t w[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      of_[2 * k] = __fadd_rn(of_[2 * k], __uint_as_float(w[k] << 16));
      of_[2 * k + 1] = __fadd_rn(of_[2 * k + 1], __uint_as_float(w[k] & 0xffff0000u));
    }
  }
  /// Adds the sums of all warps and writes them; all finishing warps call it. A buffer is written again two tiles later, and the barrier of the
  /// tile between comes behind the reads of all threads.
  __device__ __forceinline__ void write(const matmul_hopper& a, std::uint32_t buffers, const part& p, int warp, std::uint32_t buffer) {
    const int lane = int(threadIdx.x % 32);
    if constexpr (2 * lanes == 32) {
#pragma unroll
      for (float& x : of_) x = __fadd_rn(x, __shfl_xor_sync(0xffffffffu, x, lanes));
    }
    const std::uint32_t from = buffers + buffer * std::uint32_t(bytes / 2);
    if (lane < lanes) {
      const std::uint32_t to = from + std::uint32_t((warp * BN + 8 * lane) * 4);
      store_shared_16(to, make_float4(of_[0], of_[1], of_[2], of_[3]));
      store_shared_16(to + 16, make_float4(of_[4], of_[5], of_[6], of_[7]));
    }
    named_barrier(1, Warps * 32);
    if (p.row >= a.M) return;
    float* to = pointer<float>(a.column_sums) + std::int64_t(p.row / BM) * a.N + p.column;
    for (int k = warp * 32 + lane; k < min(BN, a.N - p.column); k += Warps * 32) {
      float total = load_shared_4(from + std::uint32_t(k * 4));
#pragma unroll
      for (int other = 1; other < Warps; ++other) total = __fadd_rn(total, load_shared_4(from + std::uint32_t((other * BN + k) * 4)));
      to[k] = total;
    }
  }

 private:
  float of_[8];
};

}  // namespace isotope::cuda::gpu::hopper
