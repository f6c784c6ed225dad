// architectures: 90a
// The gradient of attention of heads of 64 elements by products of warpgroups.
#include "attention_hopper_backward.cuh"
#include "attention_tiles.h"

namespace isotope::cuda::gpu {

extern "C" __global__ void __launch_bounds__(128, 4) attention_grad_queries_hopper_64(const __grid_constant__ attention_arguments a) {
  attention_hopper_queries<hopper_queries_tile.groups, false>::run(a);
}
extern "C" __global__ void __launch_bounds__(128) attention_grad_queries_hopper_64_dropout(const __grid_constant__ attention_arguments a) {
  attention_hopper_queries<hopper_queries_tile.groups, true>::run(a);
}
extern "C" __global__ void __launch_bounds__(128, 3) attention_grad_keys_hopper_64(const __grid_constant__ attention_arguments a) {
  attention_hopper_keys<hopper_keys_tile.groups, false>::run(a);
}
extern "C" __global__ void __launch_bounds__(128, 3) attention_grad_keys_hopper_64_dropout(const __grid_constant__ attention_arguments a) {
  attention_hopper_keys<hopper_keys_tile.groups, true>::run(a);
}

}  // namespace isotope::cuda::gpu
