#pragma once
// Words in the host's memory with which a kernel says that it has ended.
#include "access.cuh"

namespace isotope::cuda::gpu {

/// Sets the u32 at `ended` to 1 when `blocks` blocks have called this, all threads of each of them behind a barrier that follows what they have written: whoever reads 1 sees that.
/// `counter` is a u32 in device memory, 0 before and afterwards; it is not used by a single block. One thread of a block calls this.
__device__ inline void say_ended(std::uint64_t ended, std::uint64_t counter, unsigned blocks) {
#if defined(ISOTOPE_EMULATED_DEVICE)
  if (blocks > 1) {
    if (atomicAdd(pointer<std::uint32_t>(counter), 1u) != blocks - 1) return;
    *pointer<std::uint32_t>(counter) = 0;
  }
  *pointer<std::uint32_t>(ended) = 1;
#else
  if (blocks > 1) {
    std::uint32_t before;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;\n" : "=r"(before) : "l"(counter) : "memory");
    if (before != blocks - 1) return;
    *pointer<std::uint32_t>(counter) = 0;
  }
  asm volatile("st.release.sys.u32 [%0], %1;\n" ::"l"(ended), "r"(1) : "memory");
#endif
}

}  // namespace isotope::cuda::gpu
