#pragma once
// Sums of y's columns over the rows of a tile, which the finishing warps of matmul_hopper.cu gather from the values that they store. The order
// of the terms is fixed: the rows of a lane, the lanes of a warp, the warps. The sums of the warps of a tile are added when the next tile is
// finished, so that no warp waits for another.
#include "matmul_hopper_parts.cuh"

namespace isotope::cuda::gpu::hopper {

/// The sums of a lane, which has 8 adjacent columns of the tile; `BN / 8` lanes share a row.
template <int BN, int Warps> class column_sums {
 public:
  __device__ __forceinline__ column_sums(const layout<BN>& l, int warp) : l_(l), warp_(warp) { clear(); }

  /// Adds a row's values, in bf16.
  __device__ __forceinline__ void add(uint4 y) {
    const std::uint32_t w[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      of_[2 * k] = __fadd_rn(of_[2 * k], __uint_as_float(w[k] << 16));
      of_[2 * k + 1] = __fadd_rn(of_[2 * k + 1], __uint_as_float(w[k] & 0xffff0000u));
    }
  }
  /// Ends tile p. There are two buffers: when all warps have put the sums of a tile into one, none reads the other any more.
  __device__ __forceinline__ void end_tile(const matmul_hopper& a, const part& p) {
    write_total(a);
    constexpr int lanes = BN / 8;
    const int lane = int(threadIdx.x % 32);
    if constexpr (2 * lanes == 32) {
#pragma unroll
      for (float& x : of_) x = __fadd_rn(x, __shfl_xor_sync(0xffffffffu, x, lanes));
    }
    buffer_ ^= 1;
    if (lane < lanes) {
      const std::uint32_t to = place(warp_, 8 * lane);
      store_shared_16(to, make_float4(of_[0], of_[1], of_[2], of_[3]));
      store_shared_16(to + 16, make_float4(of_[4], of_[5], of_[6], of_[7]));
    }
    __syncwarp();
    if (lane == 0) barrier_arrive(l_.summed());
    row_ = p.row;
    column_ = p.column;
    clear();
  }
  /// Writes the sums of the tile that ended last, if there is one.
  __device__ __forceinline__ void write_total(const matmul_hopper& a) {
    if (row_ < 0) return;
    barrier_wait(l_.summed(), buffer_);
    if (row_ >= a.M) return;
    float* to = pointer<float>(a.column_sums) + std::int64_t(row_ / BM) * a.N + column_;
    // The last warps have fewer rows than the first.
    for (int k = (Warps - 1 - warp_) * 32 + int(threadIdx.x % 32); k < min(BN, a.N - column_); k += Warps * 32) {
      float total = load_shared_4(place(0, k));
#pragma unroll
      for (int other = 1; other < Warps; ++other) total = __fadd_rn(total, load_shared_4(place(other, k)));
      to[k] = total;
    }
  }

 private:
  const layout<BN>& l_;
  int warp_, row_ = -1, column_ = 0;  // the tile that ended last
  std::uint32_t buffer_ = 1;          // where its sums are
  float of_[8];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (float& x : of_) x = 0.0f;
  }
  __device__ __forceinline__ std::uint32_t place(int warp, int column) const {
    return l_.column_sums() + ((buffer_ * std::uint32_t(Warps) + std::uint32_t(warp)) * BN + std::uint32_t(column)) * 4;
  }
  static __device__ __forceinline__ void store_shared_16(std::uint32_t at, float4 x) {
    asm volatile("st.shared.v4.f32 [%0], {%1,%2,%3,%4};\n" ::"r"(at), "f"(x.x), "f"(x.y), "f"(x.z), "f"(x.w) : "memory");
  }
  static __device__ __forceinline__ float load_shared_4(std::uint32_t at) {
    float x;
    asm volatile("ld.shared.f32 %0, [%1];\n" : "=f"(x) : "r"(at) : "memory");
    return x;
  }
};

}  // namespace isotope::cuda::gpu::hopper
