// flags: -fmad=false
//
// A matmul of f32 without tensor cores for sizes without a remainder, as in training. Bound by fused multiply-adds, of which a
// multiprocessor starts four a clock and nothing beside them, so other instructions must be few. Tiles have 128 x 128 sums. With 16 x 8
// sums a thread needs six reads of 16 bytes for 128 multiply-adds, which are 92 % of the main loop's instructions, and two blocks of 128
// threads share a multiprocessor with 255 registers per thread: one stores its results while the other multiplies. Where tiles leave many
// multiprocessors with one such block, blocks of 256 threads with 8 x 8 sums are faster, one of which fills a multiprocessor. Each sum
// adds its terms in the order of K: the bits of matmul.cu.
#include "matmul_whole.cuh"

namespace isotope::cuda::gpu {

using whole_16x8 = whole_tile<128, 128, 16, 8, 16>;
using whole_8x8 = whole_tile<128, 128, 8, 8, 16>;

extern "C" __global__ void __launch_bounds__(128, 2) matmul_whole_16x8_nn(const __grid_constant__ gemm g) {
  whole_matmul<false, true, whole_16x8>(g);
}
extern "C" __global__ void __launch_bounds__(128, 2) matmul_whole_16x8_nt(const __grid_constant__ gemm g) {
  whole_matmul<false, false, whole_16x8>(g);
}
extern "C" __global__ void __launch_bounds__(128, 2) matmul_whole_16x8_tn(const __grid_constant__ gemm g) {
  whole_matmul<true, true, whole_16x8>(g);
}
extern "C" __global__ void __launch_bounds__(128, 2) matmul_whole_16x8_tt(const __grid_constant__ gemm g) {
  whole_matmul<true, false, whole_16x8>(g);
}
extern "C" __global__ void __launch_bounds__(256, 1) matmul_whole_8x8_nn(const __grid_constant__ gemm g) {
  whole_matmul<false, true, whole_8x8>(g);
}
extern "C" __global__ void __launch_bounds__(256, 1) matmul_whole_8x8_nt(const __grid_constant__ gemm g) {
  whole_matmul<false, false, whole_8x8>(g);
}
extern "C" __global__ void __launch_bounds__(256, 1) matmul_whole_8x8_tn(const __grid_constant__ gemm g) {
  whole_matmul<true, true, whole_8x8>(g);
}
extern "C" __global__ void __launch_bounds__(256, 1) matmul_whole_8x8_tt(const __grid_constant__ gemm g) {
  whole_matmul<true, false, whole_8x8>(g);
}

}  // namespace isotope::cuda::gpu
