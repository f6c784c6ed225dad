#pragma once
// How the blocks of matmul_hopper.cu divide the work and their shared memory.
#include "../device/access.cuh"
#include "../device/hopper.cuh"
#include "matmul_hopper.h"

namespace isotope::cuda::gpu::hopper {

constexpr int BM = 128, BK = 64, line_group = 8192;  // line_group: bytes of 64 lines of 128 bytes
constexpr int max_stages = 8;

/// A part of a work item: the tile of this block and its slabs.
struct part {
  int row, column;  // of the tile's first element
  int first, end;   // slabs
  bool whole;
  int slot;  // of partial sums
};

/// Visits the parts of a block's cluster in order. All warps of all blocks of the cluster visit the same slabs.
class walker {
 public:
  template <int BN> __device__ __forceinline__ static walker of(const matmul_hopper& a) {
    walker w;
    w.clusters_ = int(gridDim.x / unsigned(a.cluster));
    w.index_ = int(blockIdx.x / unsigned(a.cluster));
    w.rank_ = int(blockIdx.x % unsigned(a.cluster));
    const int items = a.row_tiles * a.column_tiles, all = items * a.slabs;
    w.at_ = a.per == 0 ? w.index_ : min(all, w.index_ * a.per);
    w.end_ = a.per == 0 ? items : min(all, w.at_ + a.per);
    w.start_ = w.at_;
    return w;
  }
  template <int BN> __device__ __forceinline__ bool next(const matmul_hopper& a, part& p) {
    if (at_ >= end_) return false;
    int item;
    if (a.per == 0) {
      item = at_;
      p.first = 0;
      p.end = a.slabs;
      p.slot = 0;
      at_ += clusters_;
    } else {
      item = at_ / a.slabs;
      p.first = at_ - item * a.slabs;
      p.end = min(a.slabs, p.first + end_ - at_);
      p.slot = at_ == start_ ? 0 : 1;
      at_ += p.end - p.first;
    }
    p.whole = p.end - p.first == a.slabs;
    place<BN>(a, item, rank_, p.row, p.column);
    return true;
  }
  /// The first element of the tile of block `rank` for a work item.
  template <int BN> __device__ __forceinline__ static void place(const matmul_hopper& a, int item, int rank, int& row, int& column) {
    const int per_group = a.group * a.column_tiles, g = item / per_group, rest = item - g * per_group;
    const int rows = min(a.group, a.row_tiles - g * a.group);
    row = ((g * a.group + rest % rows) * a.cluster + rank) * BM;
    column = rest / rows * BN;
  }

 private:
  int at_, end_, start_, clusters_, index_, rank_;
};

/// Addresses in shared memory: stages with the tiles of a and b, then sums in bf16 for both warpgroups, then barriers.
template <int BN> struct layout {
  static constexpr int a_bytes = BM * BK * 2, b_bytes = BN * BK * 2, stage_bytes = a_bytes + b_bytes;
  static constexpr int sums_bytes = BN / 64 * line_group;  // of one warpgroup
  std::uint32_t stages, sums, barriers;

  __device__ __forceinline__ layout(std::uint32_t shared, const matmul_hopper& a) {
    stages = shared;
    sums = shared + std::uint32_t(a.stages * stage_bytes);
    barriers = sums + (a.direct != 0 ? 0u : 2u * sums_bytes);
  }
  __device__ __forceinline__ std::uint32_t a(int stage) const { return stages + std::uint32_t(stage * stage_bytes); }
  __device__ __forceinline__ std::uint32_t b(int stage) const { return a(stage) + a_bytes; }
  __device__ __forceinline__ std::uint32_t filled(int stage) const { return barriers + std::uint32_t(8 * stage); }
  __device__ __forceinline__ std::uint32_t emptied(int stage) const { return barriers + std::uint32_t(8 * (max_stages + stage)); }
  __device__ __forceinline__ std::uint32_t written(int group) const { return barriers + std::uint32_t(8 * (2 * max_stages + group)); }
  __device__ __forceinline__ std::uint32_t started() const { return barriers + std::uint32_t(8 * (2 * max_stages + 4)); }
  __device__ __forceinline__ std::uint32_t read(int group) const { return barriers + std::uint32_t(8 * (2 * max_stages + 2 + group)); }
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

/// The partial sums of a block's slot, in the order of registers: quad i of thread t of warpgroup g is element (g BN / 8 + i) 128 + t.
template <int BN> __device__ __forceinline__ float4* slot_of(const matmul_hopper& a, std::int64_t block, int slot) {
  return pointer<float4>(a.partial) + (2 * block + slot) * (BM * BN / 4);
}

}  // namespace isotope::cuda::gpu::hopper
