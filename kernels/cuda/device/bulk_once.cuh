#pragma once
// Bulk copies of bytes that nothing reads again soon.
#include "hopper.cuh"

namespace isotope::cuda::gpu {

/// As bulk_load; the lines are the first that leave the L2 cache, so that they displace no others.
__device__ inline void bulk_load_once(std::uint32_t to, std::uint64_t from, std::uint32_t bytes, std::uint32_t barrier) {
#if defined(ISOTOPE_EMULATED_DEVICE)
  bulk_load(to, from, bytes, barrier);
#else
  std::uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;\n" : "=l"(policy));
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;\n" ::"r"(to),
               "l"(from), "r"(bytes), "r"(barrier), "l"(policy)
               : "memory");
#endif
}

}  // namespace isotope::cuda::gpu
