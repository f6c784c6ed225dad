#pragma once
// Kernels that start before those that they depend on have ended (programmatic dependent launch, from sm_90 on). Elsewhere, and where the graph has ordinary
// edges, these functions do nothing.
#include <cstdint>

namespace isotope::cuda::gpu {

/// Lets the kernels that depend on this one start as soon as all its blocks have called this or ended.
__device__ inline void start_dependents() {
#if !defined(ISOTOPE_EMULATED_DEVICE) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;\n" ::: "memory");
#endif
}
/// Waits until the kernels that this one depends on have ended, and their writes are visible.
__device__ inline void wait_for_dependencies() {
#if !defined(ISOTOPE_EMULATED_DEVICE) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;\n" ::: "memory");
#endif
}
/// Starts reading the line of global memory at this address into the L2 cache.
__device__ inline void prefetch_line([[maybe_unused]] const void* at) {
#if !defined(ISOTOPE_EMULATED_DEVICE)
  asm volatile("prefetch.global.L2 [%0];\n" ::"l"(at));
#endif
}

}  // namespace isotope::cuda::gpu
