#pragma once
// Words that blocks which run at the same time read together, and matrices of words that a warp transposes.
#include "hopper.cuh"

namespace isotope::cuda::gpu {

#if !defined(ISOTOPE_EMULATED_DEVICE)
/// Two words of store_word() that lie beside each other. Each is read as a whole; they need not have been written together.
__device__ inline void load_words(std::uint64_t at, std::uint64_t (&word)[2]) {
  asm volatile("ld.relaxed.gpu.global.v2.b64 {%0,%1}, [%2];\n" : "=l"(word[0]), "=l"(word[1]) : "l"(at) : "memory");
}
/// The transpose of an 8x8 matrix of 16-bit elements, of which a thread holds (lane / 4, 2 (lane % 4)) and the next one, before and after.
__device__ inline std::uint32_t transposed_matrix(std::uint32_t two) {
  std::uint32_t r;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;\n" : "=r"(r) : "r"(two));
  return r;
}
#endif

}  // namespace isotope::cuda::gpu
