#pragma once
// Copies of adjacent bytes by the tensor memory accelerator.
#include "hopper.cuh"

namespace isotope::cuda::gpu {

/// Starts a copy of `bytes` adjacent bytes into shared memory, which count at `barrier`; addresses and bytes are multiples of 16.
__device__ inline void bulk_load(std::uint32_t to, std::uint64_t from, std::uint32_t bytes, std::uint32_t barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];\n" ::"r"(to), "l"(from), "r"(bytes),
               "r"(barrier)
               : "memory");
}

}  // namespace isotope::cuda::gpu
