#pragma once
// What blocks of a cluster pass to each other: numbers that a thread writes into the shared memory of another block, which counts their bytes at a barrier.
#include "device/hopper.cuh"

namespace isotope::cuda::gpu {

__device__ inline std::uint32_t cluster_rank() {
  std::uint32_t r;
  asm volatile("mov.u32 %0, %%cluster_ctarank;\n" : "=r"(r));
  return r;
}
/// The address in block `rank` of the cluster of what is at this address of shared memory.
__device__ inline std::uint32_t address_in(std::uint32_t own, std::uint32_t rank) {
  std::uint32_t there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;\n" : "=r"(there) : "r"(own), "r"(rank));
  return there;
}
/// Writes numbers to the place of `own` in block `rank`; their bytes count at its barrier.
__device__ inline void send(const float* own, std::uint32_t barrier, std::uint32_t rank, float x) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];\n" ::"r"(address_in(shared_address(own), rank)),
               "f"(x), "r"(address_in(barrier, rank))
               : "memory");
}
__device__ inline void send(const float* own, std::uint32_t barrier, std::uint32_t rank, float x, float y) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1,%2}, [%3];\n" ::"r"(address_in(shared_address(own), rank)),
      "f"(x), "f"(y), "r"(address_in(barrier, rank))
      : "memory");
}
__device__ inline void send(const float* own, std::uint32_t barrier, std::uint32_t rank, const float4& x) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1,%2,%3,%4}, [%5];\n" ::"r"(
                   address_in(shared_address(own), rank)),
               "f"(x.x), "f"(x.y), "f"(x.z), "f"(x.w), "r"(address_in(barrier, rank))
               : "memory");
}
/// The two parts of cluster_sync: what a thread does between them waits for no other block.
__device__ inline void cluster_arrive() { asm volatile("barrier.cluster.arrive.release;\n" ::: "memory"); }
__device__ inline void cluster_wait() { asm volatile("barrier.cluster.wait.acquire;\n" ::: "memory"); }
/// Waits until all expected bytes have come from the blocks of the cluster, in the first phase of the barrier.
__device__ inline void wait_for_sent(std::uint32_t barrier) {
  asm volatile(
      "{\n.reg .pred ended;\n"
      "again:\n"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 ended, [%0], 0;\n"
      "@ended bra done;\n"
      "bra again;\n"
      "done:\n}\n" ::"r"(barrier)
      : "memory");
}

}  // namespace isotope::cuda::gpu
