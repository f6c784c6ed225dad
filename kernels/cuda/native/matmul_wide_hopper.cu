// architectures: 90a
// flags: -fmad=false
// A product of 17 to 64 rows and very many columns, as logits of decoding: bound by the bytes of the columns' weights. A block walks over tiles of 128 columns. One
// thread starts tensor copies of weights into a ring of stages of 64 along K, the first ones before the kernels that this one depends on have ended, and of all rows of x once.
// Two warpgroups multiply 64 columns each by all rows (wgmma), with the weights as first operand, so that 64 rows are enough; the sums of an element are added
// along K, 16 terms at a time. Results go through shared memory, as rows of y may begin at any element.
#include "device/early.cuh"
#include "device/hopper.cuh"
#include "device/wgmma.cuh"
#include "rows/vectors.cuh"

#include "matmul_wide_hopper.h"

namespace isotope::cuda::gpu {

/// Addresses of shared memory: all slabs of x, the ring, results of the two warpgroups, barriers.
struct wide_layout {
  std::uint32_t base, ring, results, barriers;
  __device__ explicit wide_layout(const matmul_wide& a) : base(shared_address(dynamic_shared())) {
    ring = base + std::uint32_t(a.slabs * matmul_wide::slab_bytes);
    results = ring + std::uint32_t(a.stages * matmul_wide::stage_bytes);
    barriers = results + matmul_wide::result_bytes;
  }
  __device__ std::uint32_t x(int slab) const { return base + std::uint32_t(slab * matmul_wide::slab_bytes); }
  __device__ std::uint32_t w(int stage) const { return ring + std::uint32_t(stage * matmul_wide::stage_bytes); }
  __device__ std::uint32_t filled(int stage) const { return barriers + std::uint32_t(16 * stage); }
  __device__ std::uint32_t emptied(int stage) const { return barriers + std::uint32_t(16 * stage + 8); }
  __device__ std::uint32_t rows() const { return barriers + 16 * matmul_wide::most_stages; }
};

/// One thread: copies.
__device__ inline void copy_wide(const matmul_wide& a, const wide_layout& l) {
  tensor_prefetch(a.w);
  tensor_prefetch(a.x);
  bool has_rows = false;
  const auto load_rows = [&] {
    wait_for_dependencies();
    barrier_expect(l.rows(), std::uint32_t(a.slabs * matmul_wide::slab_bytes));
    for (int k = 0; k < a.slabs; ++k) tensor_load(l.x(k), a.x, k * matmul_wide::slab, 0, l.rows());
    has_rows = true;
  };
  int stage = 0, count = 0;
  std::uint32_t parity = 1;
  for (int n0 = int(blockIdx.x) * matmul_wide::columns; n0 < a.N; n0 += int(gridDim.x) * matmul_wide::columns)
    for (int k = 0; k < a.slabs; ++k) {
      if (count++ == a.stages) load_rows();
      barrier_wait(l.emptied(stage), parity);
      barrier_expect(l.filled(stage), matmul_wide::stage_bytes);
      tensor_load(l.w(stage), a.w, k * matmul_wide::slab, n0, l.filled(stage));
      if (++stage == a.stages) stage = 0, parity ^= 1;
    }
  if (!has_rows) load_rows();
}

/// A warpgroup: products of 64 columns of each tile, and their results.
__device__ inline void multiply_wide(const matmul_wide& a, const wide_layout& l, int half) {
  const int thread = int(threadIdx.x) % 128, lane = thread % 32, warp = thread / 32;
  std::uint16_t* results =
      reinterpret_cast<std::uint16_t*>(dynamic_shared()) + (l.results - l.base) / 2 + half * matmul_wide::rows * matmul_wide::line;
  wait_for_dependencies();
  barrier_wait(l.rows(), 0);
  int stage = 0;
  std::uint32_t parity = 0;
  float d[32];
  for (int n0 = int(blockIdx.x) * matmul_wide::columns; n0 < a.N; n0 += int(gridDim.x) * matmul_wide::columns) {
    int before = 0;
    for (int k = 0; k < a.slabs; ++k) {
      barrier_wait(l.filled(stage), parity);
      const std::uint64_t from_w = matrix_descriptor<false>(l.w(stage) + std::uint32_t(half * 8192), 0),
                          from_x = matrix_descriptor<false>(l.x(k), 0);
      wgmma_fence();
#pragma unroll
      for (int i = 0; i < matmul_wide::slab / 16; ++i)
        wgmma_bf16<false, false>(d, from_w + std::uint64_t(2 * i), from_x + std::uint64_t(2 * i), k != 0 || i != 0);
      wgmma_commit();
      if (k != 0) {
        wgmma_wait<1>();
        if (lane == 0) barrier_arrive(l.emptied(before));
      }
      before = stage;
      if (++stage == a.stages) stage = 0, parity ^= 1;
    }
    wgmma_wait<0>();
    hold(d);
    if (lane == 0) barrier_arrive(l.emptied(before));
    // A thread has columns 16 warp + lane / 4 and 8 more of rows 8 j + lane % 4 * 2 and the next.
    std::uint16_t* to = results + lane % 4 * 2 * matmul_wide::line + 16 * warp + lane / 4;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const std::uint32_t low = pair_bits<bf16>(a.alpha * d[4 * j], a.alpha * d[4 * j + 1]),
                          high = pair_bits<bf16>(a.alpha * d[4 * j + 2], a.alpha * d[4 * j + 3]);
      std::uint16_t* at = to + 8 * j * matmul_wide::line;
      at[0] = std::uint16_t(low), at[matmul_wide::line] = std::uint16_t(low >> 16);
      at[8] = std::uint16_t(high), at[matmul_wide::line + 8] = std::uint16_t(high >> 16);
    }
    named_barrier(half + 1, 128);
    const int n = n0 + 64 * half + lane;
    for (int m = warp; m < a.M; m += 4) {
      std::uint16_t* y = pointer<std::uint16_t>(a.y) + std::int64_t(m) * a.N + n;
      if (n < a.N) y[0] = results[m * matmul_wide::line + lane];
      if (n + 32 < a.N) y[32] = results[m * matmul_wide::line + lane + 32];
    }
    named_barrier(half + 1, 128);
  }
}

extern "C" __global__ void __launch_bounds__(288, 1) matmul_wide_hopper(const __grid_constant__ matmul_wide a) {
  start_dependents();
  const wide_layout l(a);
  if (threadIdx.x == 0) {
    for (int i = 0; i < a.stages; ++i) {
      barrier_init(l.filled(i), 1);
      barrier_init(l.emptied(i), 8);
    }
    barrier_init(l.rows(), 1);
    barrier_init_fence();
  }
  __syncthreads();
  const int warpgroup = int(threadIdx.x) / 128;
  if (warpgroup < 2) multiply_wide(a, l, warpgroup);
  else if (threadIdx.x == 256) copy_wide(a, l);
}

}  // namespace isotope::cuda::gpu
