// Attention of whole sequences in f32, for any head size up to 256 and any format.
#include "attention_of_rows.cuh"

namespace isotope::cuda::gpu {

template <int D> __device__ inline void attention(const attention_arguments& a) {
  constexpr int own = forward_rows<D>::value.own;
  const int blocks = (a.S + own - 1) / own;
  const block_place at = place_of(blockIdx.x, unsigned(blocks), unsigned(a.B * a.H));
  attention_of_rows<D>(a, at.head, (blocks - 1 - at.block) * own);
}

extern "C" __global__ void __launch_bounds__(256) attention_32(const __grid_constant__ attention_arguments a) { attention<32>(a); }
extern "C" __global__ void __launch_bounds__(256) attention_64(const __grid_constant__ attention_arguments a) { attention<64>(a); }
extern "C" __global__ void __launch_bounds__(256) attention_128(const __grid_constant__ attention_arguments a) { attention<128>(a); }
extern "C" __global__ void __launch_bounds__(256) attention_256(const __grid_constant__ attention_arguments a) { attention<256>(a); }

}  // namespace isotope::cuda::gpu
