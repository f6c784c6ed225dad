// Kernels with one mistake each, which the emulated device must find, and their correct twins. emulator_test.cpp launches them.
#include "device/access.cuh"
#include "device/mma.cuh"

namespace isotope::cuda::gpu {

struct check {
  std::uint64_t in, out;
  std::int32_t mode;  // which mistake; 0: none
};

/// out[block] = sum of in over the block's threads. Mistakes: 1: no barrier, 2: a thread returns before it, 3: two barriers for different threads, 4: a shared
/// index behind the array, 5: writes behind dynamic shared memory.
extern "C" __global__ void __launch_bounds__(128) check_sum(const __grid_constant__ check a) {
  __shared__ float part[4];
  float s = pointer<const float>(a.in)[item()];
  for (int k = 16; k > 0; k /= 2) s += __shfl_xor_sync(0xffffffffu, s, k);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32 + (a.mode == 4 ? 1 : 0)] = s;
  if (a.mode == 2 && threadIdx.x == 77) return;
  if (a.mode == 3 && threadIdx.x < 64) {
    __syncthreads();
  } else if (a.mode != 1) {
    __syncthreads();
  }
  if (a.mode == 5 && threadIdx.x == 0) dynamic_shared()[64] = 1;
  if (threadIdx.x == 0) pointer<float>(a.out)[blockIdx.x] = part[0] + part[1] + part[2] + part[3];
}
/// out[i] = in[i ^ 1]. Mistakes: 1: half of the lanes do not take part, 2: the mask leaves out a caller, 3: a lane that is read has returned.
extern "C" __global__ void check_swap(const __grid_constant__ check a) {
  const float x = pointer<const float>(a.in)[item()];
  const bool odd = threadIdx.x % 2 == 1;
  float y = 0;
  if (a.mode == 1 && odd) {
    __syncwarp();
  } else if (a.mode == 3 && threadIdx.x == 9) {
    return;
  } else {
    y = __shfl_xor_sync(a.mode == 2 ? 0x0000ffffu : 0xffffffffu, x, 1);
  }
  pointer<float>(a.out)[item()] = y;
}
/// Copies 512 bytes through shared memory. Mistakes: 1: does not wait, 2: waits for one group too few, 3: reads an address that is not aligned.
extern "C" __global__ void check_copy(const __grid_constant__ check a) {
  const unsigned char* const from = pointer<const unsigned char>(a.in) + 16 * threadIdx.x + (a.mode == 3 ? 4 : 0);
  unsigned char* const shared = dynamic_shared();
  copy_async_16(shared + 16 * threadIdx.x, from, threadIdx.x != 3);
  copy_async_commit();
  if (a.mode == 0) copy_async_wait<0>();
  if (a.mode == 2) copy_async_wait<1>();
  __syncthreads();
  pointer<uint4>(a.out)[threadIdx.x] = *reinterpret_cast<const uint4*>(shared + 16 * (31 - threadIdx.x));
}
/// d = a b for a (16,16) and b (16,8), row-major in bf16. Mistake 1: only a part of the warp.
extern "C" __global__ void check_product(const __grid_constant__ check a) {
  unsigned char* const shared = dynamic_shared();
  const unsigned lane = threadIdx.x;
  for (unsigned i = lane; i < 384; i += 32) reinterpret_cast<std::uint16_t*>(shared)[i] = pointer<const std::uint16_t>(a.in)[i];
  __syncwarp();
  if (a.mode == 1 && lane == 5) return;
  std::uint32_t left[4], right[4];
  load_matrix_x4(left, shared + lane % 16 * 32 + lane / 16 * 16);
  load_matrix_x4_transposed(right, shared + 512 + lane % 16 * 16);
  const std::uint32_t b[2] = {right[0], right[1]};
  float d[4] = {};
  mma_16x8x16_bf16(d, left, b);
  float* const out = pointer<float>(a.out);
  for (int k = 0; k < 4; ++k) out[(lane / 4 + (k >> 1) * 8) * 8 + 2 * (lane % 4) + (k & 1)] = d[k];
}
/// Reads a pair of floats at an address that is a multiple of 4 only, if mode is 1.
extern "C" __global__ void check_pair(const __grid_constant__ check a) {
  const float2 x = *reinterpret_cast<const float2*>(a.in + (a.mode == 1 ? 4 : 0));
  pointer<float>(a.out)[0] = x.x + x.y;
}

}  // namespace isotope::cuda::gpu
