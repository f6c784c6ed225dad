#pragma once
// Words with which a block says to blocks that run at the same time that what it has written to global memory is there.
#include "hopper.cuh"

namespace isotope::cuda::gpu {

#if !defined(ISOTOPE_EMULATED_DEVICE)
/// Says so of what the thread has written, and of what barriers of the block have ordered before: whoever reads this word sees all of it.
__device__ inline void store_flag(std::uint64_t at, std::uint32_t x) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;\n" ::"l"(at), "r"(x) : "memory");
}
__device__ inline std::uint32_t load_flag(std::uint64_t at) {
  std::uint32_t x;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];\n" : "=r"(x) : "l"(at) : "memory");
  return x;
}
#endif

}  // namespace isotope::cuda::gpu
