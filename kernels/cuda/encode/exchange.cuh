#pragma once
// What the encoder adds to exchanges of a cluster: barriers of many phases, and barriers of the warps that compute.
#include "decode/exchange.cuh"
#include "encode/encode.h"

namespace isotope::cuda::gpu {

/// Waits until the phase of this parity has ended, and what other blocks have sent in it is visible.
__device__ inline void wait_for_sent(std::uint32_t barrier, std::uint32_t parity) {
  asm volatile(
      "{\n.reg .pred ended;\n"
      "again:\n"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 ended, [%0], %1;\n"
      "@ended bra done;\n"
      "bra again;\n"
      "done:\n}\n" ::"r"(barrier),
      "r"(parity)
      : "memory");
}
/// Whole warps meet: those that compute, or Warps of a group that has a number from 2 on.
__device__ inline void computing_sync() {
  __syncwarp();
  asm volatile("bar.sync 1, %0;\n" ::"n"(32 * encode_warps) : "memory");
}
template <int Warps> __device__ inline void group_sync(int number) {
  __syncwarp();
  asm volatile("bar.sync %0, %1;\n" ::"r"(number), "n"(32 * Warps) : "memory");
}
/// The box at element (a, b, c) of a tensor of three axes: see tensor_load.
__device__ inline void tensor_load(std::uint32_t to, const tensor_map_bytes& map, std::int32_t a, std::int32_t b, std::int32_t c,
                                   std::uint32_t barrier) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];\n" ::"r"(to),
               "l"(generic_address(map)), "r"(a), "r"(b), "r"(c), "r"(barrier)
               : "memory");
}
}  // namespace isotope::cuda::gpu
