// architectures: 90a
// Attention of heads of 64 elements by products of warpgroups.
#include "attention_hopper.cuh"

namespace isotope::cuda::gpu {

extern "C" __global__ void __launch_bounds__(256, 2) attention_hopper_64(const __grid_constant__ attention_arguments a) {
  attention_hopper_forward<2, false, false>::run(a);
}
extern "C" __global__ void __launch_bounds__(256, 1) attention_hopper_64_dropout(const __grid_constant__ attention_arguments a) {
  attention_hopper_forward<2, false, true>::run(a);
}

}  // namespace isotope::cuda::gpu
