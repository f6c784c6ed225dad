// architectures: 90a
//
// All layers of a small post-norm encoder on few rows. Bound by latency: a cluster has a tile of 16 rows, and its blocks divide the heads and the hidden values of the MLP, so that a
// layer has four exchanges, through shared memory: the parts of a product's rows go to the block that owns the row, which adds them up in their order, normalises the row and
// sends it to all. Weights come as boxes, which one warp asks for as soon as there is room. Tiles of longer texts pass keys and values to each other through global memory,
// from launch to launch; that they wait for each other within one launch was no faster on an H200, and neither were weights copied by warps of their own (bench/CUDA.md).
#include "encode/rows.cuh"

namespace isotope::cuda::gpu {

template <int C, int F, int H, int R> __device__ inline void encode(const encode_arguments& a) {
  using block = encode_block<C, F, H, R>;
  using memory = typename block::memory;
  static_assert(int(sizeof(memory)) <= memory::most_bytes);
  memory& s = *reinterpret_cast<memory*>(dynamic_shared());
  start_dependents();
  block b(a, s);
  b.begin();
  if (int(threadIdx.x) >= 32 * encode_warps) {
    if (threadIdx.x % 32 == 0) b.ask_for_weights();
    return;
  }
  wait_for_dependencies();
  if (a.first == 0) b.embed();
  else b.resume();
  for (int stage = a.first; stage < a.end; ++stage) {
    if (stage % 2 == 0) {
      b.multiply_qkv(stage / 2);
      continue;
    }
    b.attend(stage / 2);
    b.multiply_mlp(stage / 2);
  }
  b.gather();  // no block of the cluster ends before the others have sent it their rows
  if (a.end == a.stages) b.finish();
}

// The numbers are those of the columns and of the blocks of a cluster.
extern "C" __global__ void __launch_bounds__(encode_threads, 1) encode_384_16(const __grid_constant__ encode_arguments a) {
  encode<384, 1536, 12, 16>(a);
}
extern "C" __global__ void __launch_bounds__(encode_threads, 1) encode_384_8(const __grid_constant__ encode_arguments a) {
  encode<384, 1536, 12, 8>(a);
}

}  // namespace isotope::cuda::gpu
