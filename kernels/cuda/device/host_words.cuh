#pragma once
// Words in the host's memory with which a kernel says that it has ended.
#include "access.cuh"

namespace isotope::cuda::gpu {

/// Sets the u32 at `ended` to 1 when `blocks` blocks have called this, all threads of each of them behind a barrier that follows what they have written: whoever reads 1 sees that.
/// `counter` is a u32 in device memory, 0 before and afterwards; it is not used by a single block. One thread of a block calls this.
__device__ inline void say_ended(std::uint64_t ended, std::uint64_t counter, unsigned blocks) {
  __threadfence_system();
  if (blocks > 1) {
    if (atomicAdd(pointer<std::uint32_t>(counter), 1u) != blocks - 1) return;
    *pointer<std::uint32_t>(counter) = 0;
    __threadfence_system();
  }
  *pointer<volatile std::uint32_t>(ended) = 1;
}

}  // namespace isotope::cuda::gpu
