#pragma once
// Weights as boxes of tensors and cached rows as runs of bytes, which the tensor memory accelerator copies to shared memory: one thread starts them, and they stand in the way of
// no reads of the multiprocessor.
#include "decode/exchange.cuh"
#include "decode/few.h"

namespace isotope::cuda::gpu {

/// Starts the copy of `bytes` to shared memory, which count at `barrier`; all are multiples of 16.
__device__ inline void bulk_load(void* to, std::uint64_t from, std::uint32_t bytes, std::uint32_t barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];\n" ::"r"(shared_address(to)),
               "l"(from), "r"(bytes), "r"(barrier)
               : "memory");
}
/// Writes a word to the place of `own` in block `rank`; its bytes count at its barrier.
__device__ inline void send(const std::uint32_t* own, std::uint32_t barrier, std::uint32_t rank, std::uint32_t x) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];\n" ::"r"(address_in(shared_address(own), rank)),
               "r"(x), "r"(address_in(barrier, rank))
               : "memory");
}

}  // namespace isotope::cuda::gpu
