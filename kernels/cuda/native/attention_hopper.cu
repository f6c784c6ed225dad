// architectures: 90a
#include "attention_hopper.cuh"

namespace isotope::cuda::gpu {

extern "C" __global__ void __launch_bounds__(256, 2) attention_hopper_64(const __grid_constant__ attention_arguments a) {
  attention_hopper_forward<2>::run(a);
}

}  // namespace isotope::cuda::gpu
