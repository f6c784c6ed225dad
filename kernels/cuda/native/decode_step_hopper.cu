// architectures: 90a
//
// A whole step of decoding of one row in one launch: all layers, the last norm, and the logits. Bound by latency. Twelve
// clusters of eight blocks, each with a multiprocessor of its own, fit an H200 at once (15 do, 16 do not), so that blocks may wait for each other: a cluster has a head of the
// attention half and a twelfth of the hidden values of the MLP half. Weights come as boxes of tensors, a layer ahead: a matrix is copied as soon as the one of the layer before has
// been read. Clusters pass their parts of the residual row on as words of a number and the number of the exchange, which readers wait for; within a cluster, blocks write
// into each other's shared memory, as in decode_hopper.cu. Weights are the first operand of mma.sync, 16 rows of them, and the row the second one, in one or two of eight columns. One kernel for
// all layers finds its instructions in the caches from the second layer on, and no launch ends between them: bench/CUDA_INFERENCE.md has the clocks.
#include "decode/step.cuh"

namespace isotope::cuda::gpu {

// The number is that of the columns.
extern "C" __global__ void __launch_bounds__(decode_step_threads, 1) decode_step_768(const __grid_constant__ decode_step a) {
  step_of_one<768>(a);
}

}  // namespace isotope::cuda::gpu
