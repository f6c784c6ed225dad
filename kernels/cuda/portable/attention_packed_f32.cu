// Attention of packed sequences with large register tiles in f32.
#include "../attention/packed.cuh"
#include "attention_of_f32.cuh"

namespace isotope::cuda::gpu {

template <class PRODUCTS> __device__ inline void attention_packed_f32(const packed_heads_arguments& p) {
  attend_in_sequence<PRODUCTS::own_rows>(p,
                                         [](const attention_arguments& a, int head, int q0) { attention_of_f32<PRODUCTS>(a, head, q0); });
}

extern "C" __global__ void __launch_bounds__(128, 3) attention_packed_f32_32(const __grid_constant__ packed_heads_arguments a) {
  attention_packed_f32<f32_forward<32>>(a);
}
extern "C" __global__ void __launch_bounds__(128, 3) attention_packed_f32_64(const __grid_constant__ packed_heads_arguments a) {
  attention_packed_f32<f32_forward<64>>(a);
}
extern "C" __global__ void __launch_bounds__(128, 2) attention_packed_f32_96(const __grid_constant__ packed_heads_arguments a) {
  attention_packed_f32<f32_forward<96>>(a);
}
extern "C" __global__ void __launch_bounds__(128, 2) attention_packed_f32_128(const __grid_constant__ packed_heads_arguments a) {
  attention_packed_f32<f32_forward<128>>(a);
}

}  // namespace isotope::cuda::gpu
