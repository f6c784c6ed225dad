// Kernels with one mistake each, which the emulated device must find, and their correct twins. emulator_test.cpp launches them.
#include "device/access.cuh"
#include "device/cluster.cuh"
#include "device/mma.cuh"
#include "device/wgmma.cuh"

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
/// d = a b for a (16,16) and b (16,8), row-major in bf16, which is transposed when it is loaded or, in mode 2, later. Mistake 1: only a part of the warp.
extern "C" __global__ void check_product(const __grid_constant__ check a) {
  unsigned char* const shared = dynamic_shared();
  const unsigned lane = threadIdx.x;
  for (unsigned i = lane; i < 384; i += 32) reinterpret_cast<std::uint16_t*>(shared)[i] = pointer<const std::uint16_t>(a.in)[i];
  __syncwarp();
  if (a.mode == 1 && lane == 5) return;
  std::uint32_t left[4], right[4];
  load_matrix_x4(left, shared + lane % 16 * 32 + lane / 16 * 16);
  if (a.mode == 2) load_matrix_x4(right, shared + 512 + lane % 16 * 16);
  else load_matrix_x4_transposed(right, shared + 512 + lane % 16 * 16);
  if (a.mode == 2) right[0] = transposed_matrix(right[0]), right[1] = transposed_matrix(right[1]);
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

/// Clusters of two blocks: out[item] = in[item of the other block]. Mistakes: 1: does not wait, 2: waits for too many bytes, 3: sends to a block that has ended, 4: a barrier without
/// its initialisation, 5: sends before the other block has initialised its barrier.
extern "C" __global__ void check_exchange(const __grid_constant__ check a) {
  float* const received = reinterpret_cast<float*>(dynamic_shared() + 16);
  const std::uint32_t barrier = shared_address(dynamic_shared()), other = 1 - cluster_rank();
  if (threadIdx.x == 0 && a.mode != 4) {
    barrier_init(barrier, 1);
    barrier_expect(barrier, 4 * blockDim.x + (a.mode == 2 ? 4 : 0));
  }
  if (a.mode == 5) __syncthreads();
  else cluster_sync();
  if (a.mode == 3 && cluster_rank() == 1) return;
  send(received + threadIdx.x, barrier, other, pointer<const float>(a.in)[item()]);
  if (a.mode == 1) cluster_sync();
  else wait_for_sent(barrier, 0);
  pointer<float>(a.out)[item()] = received[threadIdx.x];
}
/// Blocks that run together: out[block] = in[block] + out of the block before, which is passed on as a word with tag 7. Mistake 1: another tag.
extern "C" __global__ void check_words(const __grid_constant__ check a) {
  if (threadIdx.x != 0) return;
  const std::uint64_t words = a.out + 1024;
  float before[1] = {};
  if (blockIdx.x != 0) wait_for_words(words + 8 * (blockIdx.x - 1), 0, 7, before);
  const float sum = before[0] + pointer<const float>(a.in)[blockIdx.x];
  store_word(words + 8 * blockIdx.x, sum, a.mode == 1 ? 8 : 7);
  pointer<float>(a.out)[blockIdx.x] = sum;
}
/// Copies 512 bytes through shared memory; the threads of the second warp count at a named barrier. Mistakes: 1: does not wait for the copy, 2: an address that is not aligned,
/// 3: waits for another phase, 4: the second warp does not come.
extern "C" __global__ void check_bulk(const __grid_constant__ check a) {
  unsigned char* const shared = dynamic_shared();
  const std::uint32_t barrier = shared_address(shared + 512);
  if (threadIdx.x == 0) {
    barrier_init(barrier, 1);
    barrier_expect(barrier, 512);
    bulk_load(shared, a.in + (a.mode == 2 ? 4 : 0), 512, barrier);
  }
  if (threadIdx.x >= 32) {
    if (a.mode != 4) named_barrier_arrive(1, 64);
    return;
  }
  named_barrier(1, 64);
  if (a.mode != 1) barrier_wait(barrier, a.mode == 3 ? 1 : 0);
  pointer<uint4>(a.out)[threadIdx.x] = *reinterpret_cast<const uint4*>(shared + 16 * threadIdx.x);
  if (a.mode == 3) barrier_wait(barrier, 0);
}
/// d = a b^T for rows of 64 elements in bf16, a (64,64) and b (64,64), by a warpgroup. Mistakes: 1: does not wait for the product, 2: reads the sums before it waits.
extern "C" __global__ void check_warpgroup(const __grid_constant__ check a) {
  unsigned char* const shared = dynamic_shared();
  for (unsigned i = threadIdx.x; i < 2 * 64 * 8; i += 128) {
    const unsigned row = i / 8, chunk = i % 8;
    *reinterpret_cast<uint4*>(shared + 128 * row + 16 * (chunk ^ row % 8)) = pointer<const uint4>(a.in)[i];
  }
  publish();
  __syncthreads();
  float d[32] = {};
  wgmma_fence();
  for (unsigned k = 0; k < 4; ++k)
    wgmma_bf16<false, false>(d, matrix_descriptor<false>(shared_address(shared) + 32 * k, 0),
                             matrix_descriptor<false>(shared_address(shared) + 8192 + 32 * k, 0), k != 0);
  wgmma_commit();
  if (a.mode == 0) wgmma_wait<0>();
  const int lane = int(threadIdx.x) % 32, row = int(threadIdx.x) / 32 * 16 + lane / 4;
  for (int i = 0; i < 32; ++i) pointer<float>(a.out)[(row + i % 4 / 2 * 8) * 64 + i / 4 * 8 + lane % 4 * 2 + i % 2] = d[i];
  if (a.mode == 2) wgmma_wait<0>();
}

}  // namespace isotope::cuda::gpu
