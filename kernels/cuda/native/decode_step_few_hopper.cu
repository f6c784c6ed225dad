// architectures: 90a
//
// A whole step of decoding of up to eight rows in one launch, as decode_step_hopper.cu has it for one. Bound by latency and by the memory: 147 KB of weights a block and layer and, of
// eight rows with 512 cached, 131 KB of keys and values. Each row is attended by one, two or four blocks of a head's cluster, 16 positions at a time by tensor cores; the first 160 of a
// block come to shared memory a layer ahead, 128 more to that of the first product's weights once these have been read, and all others to the L2 cache a layer ahead. Blocks of a
// cluster pass hidden values and attended rows to each other rounded to bf16, as the projections read them. Parts of the residual rows pass through global memory as f32 whose last bit
// tells those of this exchange from those before, so that they take no more bytes than the numbers; readers wait until their own cluster's parts are written, so that they do not
// take the L2 cache's bandwidth before.
#include "decode/step_few.cuh"

namespace isotope::cuda::gpu {

// The number is that of the columns.
extern "C" __global__ void __launch_bounds__(decode_step_few_threads, 1) decode_step_few_768(const __grid_constant__ decode_step_few a) {
  step_of_few<768>(a);
}

}  // namespace isotope::cuda::gpu
