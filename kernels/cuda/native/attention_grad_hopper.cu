// architectures: 90a
// The gradient of attention of heads of 64 elements by products of warpgroups.
#include "attention_hopper_backward.cuh"

namespace isotope::cuda::gpu {

extern "C" __global__ void __launch_bounds__(256, 2) attention_grad_queries_hopper_64(const __grid_constant__ attention_arguments a) {
  attention_hopper_queries<2, false>::run(a);
}
extern "C" __global__ void __launch_bounds__(256, 1)
    attention_grad_queries_hopper_64_dropout(const __grid_constant__ attention_arguments a) {
  attention_hopper_queries<2, true>::run(a);
}
extern "C" __global__ void __launch_bounds__(256, 1) attention_grad_keys_hopper_64(const __grid_constant__ attention_arguments a) {
  attention_hopper_keys<2, false>::run(a);
}
extern "C" __global__ void __launch_bounds__(256, 1) attention_grad_keys_hopper_64_dropout(const __grid_constant__ attention_arguments a) {
  attention_hopper_keys<2, true>::run(a);
}

}  // namespace isotope::cuda::gpu
