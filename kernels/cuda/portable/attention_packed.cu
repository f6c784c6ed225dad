// Attention of packed sequences in f32, for any head size up to 256 and any format.
#include "../attention/packed.cuh"
#include "attention_of_rows.cuh"

namespace isotope::cuda::gpu {

template <int D> __device__ inline void attention_packed(const packed_heads_arguments& p) {
  attend_in_sequence<forward_rows<D>::value.own>(p,
                                                 [](const attention_arguments& a, int head, int q0) { attention_of_rows<D>(a, head, q0); });
}

extern "C" __global__ void __launch_bounds__(256) attention_packed_32(const __grid_constant__ packed_heads_arguments a) {
  attention_packed<32>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_packed_64(const __grid_constant__ packed_heads_arguments a) {
  attention_packed<64>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_packed_128(const __grid_constant__ packed_heads_arguments a) {
  attention_packed<128>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_packed_256(const __grid_constant__ packed_heads_arguments a) {
  attention_packed<256>(a);
}

}  // namespace isotope::cuda::gpu
