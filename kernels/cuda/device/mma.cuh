#pragma once
// Tensor-core products and asynchronous copies of devices from sm_80 on. The tests without a GPU define their own functions of the same names.
#include <cstdint>

#if defined(ISOTOPE_EMULATED_DEVICE)
#include <emulated_mma.h>
#else

namespace isotope::cuda::gpu {

/// The address of shared memory as instructions take it.
__device__ inline std::uint32_t shared_address(const void* p) { return std::uint32_t(__cvta_generic_to_shared(p)); }

/// d += a b for a 16x16 tile a, a 16x8 tile b and a 16x8 tile d in f32, distributed over a warp (PTX ISA, mma.m16n8k16): with g = lane / 4 and t = lane % 4, a
/// holds the pairs (g, 2t), (g + 8, 2t), (g, 2t + 8), (g + 8, 2t + 8); b the pairs (2t, g), (2t + 8, g); d (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1).
__device__ inline void mma_16x8x16_bf16(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
/// Loads four 8x8 matrices of 16-bit elements: lane i gives the address of row i % 8 of matrix i / 8 (16 bytes, aligned); r[k] holds elements (lane / 4, 2 (lane % 4)) and the
/// next of matrix k.
__device__ inline void load_matrix_x4(std::uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row)));
}
/// The same with each 8x8 matrix transposed.
__device__ inline void load_matrix_x4_transposed(std::uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row)));
}

/// Loads 16 bytes, aligned to 16, from global memory here: the compiler does not move the load towards the first use of its result.
__device__ inline float4 load_here(const float4* p) {
  float4 x;
  asm volatile("ld.global.v4.f32 {%0,%1,%2,%3}, [%4];\n" : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w) : "l"(p));
  return x;
}
/// Starts a copy of 16 bytes from global to shared memory, both aligned to 16 bytes.
__device__ inline void copy_async_16(void* shared, const void* global) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(shared_address(shared)), "l"(global) : "memory");
}
/// The same, or 16 zero bytes if not `valid`; `global` must be a valid address in both cases.
__device__ inline void copy_async_16(void* shared, const void* global, bool valid) {
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(shared_address(shared)), "l"(global), "r"(bytes) : "memory");
}
/// Ends a group of the copies that this thread has started.
__device__ inline void copy_async_commit() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }
/// Waits until at most N groups of this thread are unfinished, or until all its copies are there.
template <int N> __device__ inline void copy_async_wait() { asm volatile("cp.async.wait_group %0;\n" ::"n"(N) : "memory"); }
__device__ inline void copy_async_wait_all() { asm volatile("cp.async.wait_all;\n" ::: "memory"); }

}  // namespace isotope::cuda::gpu
#endif
