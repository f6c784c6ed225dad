// Attention of whole sequences with large register tiles in f32.
#include "attention_of_f32.cuh"

namespace isotope::cuda::gpu {

template <class PRODUCTS> __device__ inline void attention_f32(const attention_arguments& a) {
  constexpr int own = PRODUCTS::own_rows;
  const int blocks = (a.S + own - 1) / own;
  const block_place at = place_of(blockIdx.x, unsigned(blocks), unsigned(a.B * a.H));
  attention_of_f32<PRODUCTS>(a, at.head, (blocks - 1 - at.block) * own);
}

extern "C" __global__ void __launch_bounds__(128, 3) attention_f32_32(const __grid_constant__ attention_arguments a) {
  attention_f32<f32_forward<32>>(a);
}
extern "C" __global__ void __launch_bounds__(128, 3) attention_f32_64(const __grid_constant__ attention_arguments a) {
  attention_f32<f32_forward<64>>(a);
}
extern "C" __global__ void __launch_bounds__(128, 2) attention_f32_96(const __grid_constant__ attention_arguments a) {
  attention_f32<f32_forward<96>>(a);
}
extern "C" __global__ void __launch_bounds__(128, 2) attention_f32_128(const __grid_constant__ attention_arguments a) {
  attention_f32<f32_forward<128>>(a);
}

}  // namespace isotope::cuda::gpu
