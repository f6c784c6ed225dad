// The derivative of queries on tensor cores, for each head size with and without dropout.
#include "attention_backward.cuh"

namespace isotope::cuda::gpu {

/// Head size D; DROPPED: some probabilities are dropped.
template <int D, bool DROPPED> __device__ inline void attention_grad_queries_mma(const attention_arguments& a) {
  constexpr attention_tile t = queries_tile<D>::value;
  attention_backward_queries<D, t.warps, t.columns, t.part, DROPPED>::run(a);
}

extern "C" __global__ void __launch_bounds__(128) attention_grad_queries_mma_32(const __grid_constant__ attention_arguments a) {
  attention_grad_queries_mma<32, false>(a);
}
extern "C" __global__ void __launch_bounds__(128) attention_grad_queries_mma_32_dropout(const __grid_constant__ attention_arguments a) {
  attention_grad_queries_mma<32, true>(a);
}
extern "C" __global__ void __launch_bounds__(128, 3) attention_grad_queries_mma_64(const __grid_constant__ attention_arguments a) {
  attention_grad_queries_mma<64, false>(a);
}
extern "C" __global__ void __launch_bounds__(128) attention_grad_queries_mma_64_dropout(const __grid_constant__ attention_arguments a) {
  attention_grad_queries_mma<64, true>(a);
}
extern "C" __global__ void __launch_bounds__(128) attention_grad_queries_mma_80(const __grid_constant__ attention_arguments a) {
  attention_grad_queries_mma<80, false>(a);
}
extern "C" __global__ void __launch_bounds__(128) attention_grad_queries_mma_80_dropout(const __grid_constant__ attention_arguments a) {
  attention_grad_queries_mma<80, true>(a);
}
extern "C" __global__ void __launch_bounds__(128) attention_grad_queries_mma_96(const __grid_constant__ attention_arguments a) {
  attention_grad_queries_mma<96, false>(a);
}
extern "C" __global__ void __launch_bounds__(128) attention_grad_queries_mma_96_dropout(const __grid_constant__ attention_arguments a) {
  attention_grad_queries_mma<96, true>(a);
}
extern "C" __global__ void __launch_bounds__(128) attention_grad_queries_mma_128(const __grid_constant__ attention_arguments a) {
  attention_grad_queries_mma<128, false>(a);
}
extern "C" __global__ void __launch_bounds__(128) attention_grad_queries_mma_128_dropout(const __grid_constant__ attention_arguments a) {
  attention_grad_queries_mma<128, true>(a);
}

}  // namespace isotope::cuda::gpu
