// architectures: 90a
// Attention of heads of 64 elements by products of warpgroups.
#include "attention_hopper.cuh"
#include "attention_tiles.h"

namespace isotope::cuda::gpu {

extern "C" __global__ void __launch_bounds__(128, 5) attention_hopper_64(const __grid_constant__ attention_arguments a) {
  attention_hopper_forward<hopper_forward_tile.groups, hopper_forward_tile.columns, false>::run(a);
}
extern "C" __global__ void __launch_bounds__(128) attention_hopper_64_dropout(const __grid_constant__ attention_arguments a) {
  attention_hopper_forward<hopper_forward_tile.groups, hopper_forward_tile.columns, true>::run(a);
}

}  // namespace isotope::cuda::gpu
