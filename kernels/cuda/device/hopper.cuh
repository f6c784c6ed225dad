#pragma once
// Instructions of sm_90a beside wgmma: barriers in shared memory that count arrivals and bytes, tensor copies into the shared memory of
// one block or of all blocks of a cluster, and the division of registers between warpgroups. Addresses of shared memory are 32-bit, as
// shared_address() returns them. The tests without a GPU define their own functions of the same names.
#include "access.cuh"
#include "hopper.h"
#include "mma.cuh"

#if defined(ISOTOPE_EMULATED_DEVICE)
#include <emulated_hopper.h>
#else

namespace isotope::cuda::gpu {

/// Barriers are 8 bytes in shared memory. A phase ends when `arrivals` threads have arrived and all expected bytes have come.
__device__ inline void barrier_init(std::uint32_t barrier, std::uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(barrier), "r"(arrivals) : "memory");
}
/// Makes initialised barriers visible to the other blocks of the cluster and to tensor copies.
__device__ inline void barrier_init_fence() { asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory"); }
__device__ inline void barrier_arrive(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(barrier) : "memory");
}
/// Arrives at the barrier of the same offset in block `rank` of the cluster. This orders no writes of other blocks: a fence for that
/// costs more than a slab's products.
__device__ inline void barrier_arrive(std::uint32_t barrier, std::uint32_t rank) {
  asm volatile(
      "{\n.reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n}\n" ::"r"(barrier),
      "r"(rank)
      : "memory");
}
/// Arrives, and expects `bytes` of tensor copies in this phase.
__device__ inline void barrier_expect(std::uint32_t barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(barrier), "r"(bytes) : "memory");
}
/// Waits until the phase of this parity has ended. A new barrier counts as if a phase of parity 1 had ended.
__device__ inline void barrier_wait(std::uint32_t barrier, std::uint32_t parity) {
  asm volatile(
      "{\n.reg .pred ended;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 ended, [%0], %1;\n"
      "@ended bra done;\n"
      "bra again;\n"
      "done:\n}\n" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

__device__ inline std::uint64_t generic_address(const tensor_map_bytes& map) { return reinterpret_cast<std::uint64_t>(&map); }
__device__ inline void tensor_prefetch(const tensor_map_bytes& map) {
  asm volatile("prefetch.tensormap [%0];\n" ::"l"(generic_address(map)) : "memory");
}
/// Starts the copy of the box at element (column, row) into shared memory; its bytes count at `barrier`. Elements outside of the tensor
/// are zeros.
__device__ inline void tensor_load(std::uint32_t to, const tensor_map_bytes& map, std::int32_t column, std::int32_t row,
                                   std::uint32_t barrier) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];\n" ::"r"(to),
               "l"(generic_address(map)), "r"(column), "r"(row), "r"(barrier)
               : "memory");
}
/// The box at element (column, row, plane) of a tensor of three axes.
__device__ inline void tensor_load(std::uint32_t to, const tensor_map_bytes& map, std::int32_t column, std::int32_t row, std::int32_t plane,
                                   std::uint32_t barrier) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];\n" ::"r"(to),
               "l"(generic_address(map)), "r"(column), "r"(row), "r"(plane), "r"(barrier)
               : "memory");
}
/// The same of two axes into every block of the cluster whose bit of `ranks` is set, at the same offsets of data and barrier.
__device__ inline void tensor_load_all(std::uint32_t to, const tensor_map_bytes& map, std::int32_t column, std::int32_t row,
                                       std::uint32_t barrier, std::uint16_t ranks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;\n" ::
          "r"(to),
      "l"(generic_address(map)), "r"(column), "r"(row), "r"(barrier), "h"(ranks)
      : "memory");
}

/// Starts a copy of `bytes` adjacent bytes into shared memory, which count at `barrier`; addresses and bytes are multiples of 16.
__device__ inline void bulk_load(std::uint32_t to, std::uint64_t from, std::uint32_t bytes, std::uint32_t barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];\n" ::"r"(to), "l"(from), "r"(bytes),
               "r"(barrier)
               : "memory");
}

__device__ inline void bulk_load(void* to, std::uint64_t from, std::uint32_t bytes, std::uint32_t barrier) {
  bulk_load(shared_address(to), from, bytes, barrier);
}

/// Starts reading `bytes` of global memory into the L2 cache; both are multiples of 16.
__device__ inline void prefetch_l2(std::uint64_t at, std::uint32_t bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;\n" ::"l"(at), "r"(bytes) : "memory");
}

/// `threads` threads of the block meet at one of its barriers 1 to 15; or a thread counts there and goes on.
__device__ inline void named_barrier(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;\n" ::"r"(barrier), "r"(threads) : "memory");
}
__device__ inline void named_barrier_arrive(int barrier, int threads) {
  asm volatile("bar.arrive %0, %1;\n" ::"r"(barrier), "r"(threads) : "memory");
}
/// Makes what this thread wrote to shared memory visible to tensor copies and products of warpgroups.
__device__ inline void publish() { asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory"); }

/// Sets the registers of each thread of the warpgroup; all its warps execute it.
template <int Count> __device__ inline void take_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(Count)); }
template <int Count> __device__ inline void give_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(Count)); }

/// Stores four 8x8 matrices of 16-bit elements, the inverse of load_matrix_x4: lane i gives the address of row i % 8 of matrix i / 8.
__device__ inline void store_matrix_x4(std::uint32_t row, std::uint32_t r0, std::uint32_t r1, std::uint32_t r2, std::uint32_t r3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};\n" ::"r"(row), "r"(r0), "r"(r1), "r"(r2), "r"(r3) : "memory");
}
/// Reads and writes 16 bytes of global memory where `valid`; zeros otherwise.
__device__ inline uint4 load_global_16(std::uint64_t at, bool valid) {
  uint4 x{};
  asm volatile(
      "{\n.reg .pred valid;\n"
      "setp.ne.b32 valid, %5, 0;\n"
      "@valid ld.global.v4.u32 {%0,%1,%2,%3}, [%4];\n}\n"
      : "+r"(x.x), "+r"(x.y), "+r"(x.z), "+r"(x.w)
      : "l"(at), "r"(int(valid))
      : "memory");
  return x;
}
__device__ inline void store_global_16(std::uint64_t at, uint4 x, bool valid) {
  asm volatile(
      "{\n.reg .pred valid;\n"
      "setp.ne.b32 valid, %5, 0;\n"
      "@valid st.global.v4.u32 [%4], {%0,%1,%2,%3};\n}\n" ::"r"(x.x),
      "r"(x.y), "r"(x.z), "r"(x.w), "l"(at), "r"(int(valid))
      : "memory");
}
__device__ inline uint4 load_shared_16(std::uint32_t at) {
  uint4 x;
  asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];\n" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "r"(at) : "memory");
  return x;
}

__device__ inline float load_shared_4(std::uint32_t at) {
  float x;
  asm volatile("ld.shared.f32 %0, [%1];\n" : "=f"(x) : "r"(at) : "memory");
  return x;
}
__device__ inline float2 load_shared_8(std::uint32_t at) {
  float2 x;
  asm volatile("ld.shared.v2.f32 {%0,%1}, [%2];\n" : "=f"(x.x), "=f"(x.y) : "r"(at) : "memory");
  return x;
}
__device__ inline void store_shared_16(std::uint32_t at, float4 x) {
  asm volatile("st.shared.v4.f32 [%0], {%1,%2,%3,%4};\n" ::"r"(at), "f"(x.x), "f"(x.y), "f"(x.z), "f"(x.w) : "memory");
}

}  // namespace isotope::cuda::gpu
#endif
