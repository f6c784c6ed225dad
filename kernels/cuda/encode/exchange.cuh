#pragma once
// How warps of a block of native/encode_hopper.cu meet.
#include "device/cluster.cuh"
#include "device/words.cuh"
#include "encode/encode.h"

namespace isotope::cuda::gpu {

/// Whole warps meet: those that compute, or Warps of a group that has a number from 2 on.
__device__ inline void computing_sync() {
  __syncwarp();
  named_barrier(1, 32 * encode_warps);
}
template <int Warps> __device__ inline void group_sync(int number) {
  __syncwarp();
  named_barrier(number, 32 * Warps);
}

}  // namespace isotope::cuda::gpu
