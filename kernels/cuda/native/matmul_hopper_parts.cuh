#pragma once
// How the blocks of matmul_hopper.cu divide the work and their shared memory.
#include "../device/access.cuh"
#include "../device/cluster.cuh"
#include "matmul_hopper.h"

namespace isotope::cuda::gpu::hopper {

constexpr int BM = 128, BK = 64, line_group = 8192;  // line_group: bytes of 64 lines of 128 bytes
constexpr int max_stages = 8, barrier_bytes = 256;

/// A part of a work item: the tile of this block, its slabs, and where its sums go if the work item has several parts.
struct part {
  int row, column;  // of the tile's first element
  int first, end;   // slabs
  int slot;
};

/// Visits the parts of a block's cluster: the first parts of all work items, then the second ones, so that blocks that run at the same
/// time read the same slabs. All warps of all blocks of the cluster visit the same slabs.
class walker {
 public:
  template <class Arguments> __device__ __forceinline__ explicit walker(const Arguments& a) {
    items_ = a.row_tiles * a.column_tiles;
    at_ = int(blockIdx.x / unsigned(a.cluster));
    rank_ = int(blockIdx.x % unsigned(a.cluster));
    step_ = int(gridDim.x / unsigned(a.cluster));
  }
  template <int BN, class Arguments> __device__ __forceinline__ bool next(const Arguments& a, part& p) {
    if (at_ >= items_ * a.parts) return false;
    const int k = at_ / items_;
    p.first = k * a.per;
    p.end = min(a.slabs, p.first + a.per);
    p.slot = at_ * a.cluster + rank_;
    place<BN>(a, at_ - k * items_, rank_, p.row, p.column);
    at_ += step_;
    return true;
  }
  /// The first element of the tile of block `rank` for a work item.
  template <int BN, class Arguments>
  __device__ __forceinline__ static void place(const Arguments& a, int item, int rank, int& row, int& column) {
    const int per_group = a.group * a.column_tiles, g = item / per_group, rest = item - g * per_group;
    const int rows = min(a.group, a.row_tiles - g * a.group);
    row = ((g * a.group + rest % rows) * a.cluster + rank) * BM;
    column = rest / rows * BN;
  }

 private:
  int items_, at_, step_, rank_;
};

/// Addresses in shared memory: stages with the tiles of a and b, then sums in bf16 of both warpgroups, then barriers, then, where columns are
/// summed, two buffers with the sums of each finishing warp.
template <int BN> struct layout {
  static constexpr int a_bytes = BM * BK * 2, b_bytes = BN * BK * 2, stage_bytes = a_bytes + b_bytes;
  static constexpr int sums_bytes = BN / 64 * line_group;  // of one warpgroup
  std::uint32_t stages, sums, barriers;

  __device__ __forceinline__ layout(std::uint32_t shared, const matmul_hopper& a) {
    stages = shared;
    sums = shared + std::uint32_t(a.stages * stage_bytes);
    barriers = sums + std::uint32_t(a.sums * sums_bytes);
  }
  __device__ __forceinline__ std::uint32_t sums_of(int group) const { return sums + std::uint32_t(group * sums_bytes); }
  __device__ __forceinline__ std::uint32_t a(int stage) const { return stages + std::uint32_t(stage * stage_bytes); }
  __device__ __forceinline__ std::uint32_t b(int stage) const { return a(stage) + a_bytes; }
  __device__ __forceinline__ std::uint32_t filled(int stage) const { return barriers + std::uint32_t(8 * stage); }
  __device__ __forceinline__ std::uint32_t emptied(int stage) const { return barriers + std::uint32_t(8 * (max_stages + stage)); }
  __device__ __forceinline__ std::uint32_t written(int group) const { return barriers + std::uint32_t(8 * (2 * max_stages + group)); }
  __device__ __forceinline__ std::uint32_t read(int group) const { return barriers + std::uint32_t(8 * (2 * max_stages + 2 + group)); }
  __device__ __forceinline__ std::uint32_t column_sums() const { return barriers + barrier_bytes; }
};

/// A position in the ring of stages.
struct ring {
  int stage = 0;
  std::uint32_t parity = 0;
  __device__ __forceinline__ void advance(int stages) {
    if (++stage == stages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

/// Partial sums of a tile in the order of registers: quad i of thread t of warpgroup g is element (g BN / 8 + i) 128 + t.
template <int BN> __device__ __forceinline__ float4* partial_sums(const matmul_hopper& a, std::int64_t slot) {
  return pointer<float4>(a.partial) + slot * (BM * BN / 4);
}

}  // namespace isotope::cuda::gpu::hopper
