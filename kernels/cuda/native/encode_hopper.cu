// architectures: 90a
//
// All layers of a small post-norm encoder on few rows. Bound by latency, and by the bytes that blocks of a cluster send each other: a cluster has 16 or 24 rows, and its blocks divide
// the heads and the hidden values of the MLP, so that a layer has four exchanges, through shared memory: the parts of a product's rows go to the blocks that own halves of the rows, which add
// them up in their order, normalise them and send them to all. Weights come as boxes, which one warp asks for as soon as there is room. Clusters pass keys and values to each other through
// global memory: as words with tags, where all of them run at the same time, or from launch to launch. Weights copied by warps of their own were slower on an H200, as were clusters of 32 rows
// (bench/CUDA_INFERENCE.md).
#include "encode/rows.cuh"

namespace isotope::cuda::gpu {

template <int C, int F, int H, int T> __device__ inline void encode(const encode_arguments& a) {
  using block = encode_block<C, F, H, T>;
  using memory = typename block::memory;
  static_assert(int(sizeof(memory)) <= memory::most_bytes);
  memory& s = *reinterpret_cast<memory*>(dynamic_shared());
  start_dependents();
  block b(a, s);
  b.begin();
  if (int(threadIdx.x) >= 32 * encode_warps) {
    give_registers<encode_other_registers>();
    if (threadIdx.x == 32 * encode_warps) b.ask_for_weights();
    return;
  }
  take_registers<encode_registers>();
  wait_for_dependencies();
  if (a.first == 0) b.embed();
  else b.resume();
  if (a.first % 2 == 0) b.prepare_qkv();
  for (int layer = a.first / 2;; ++layer) {
    b.keep_place();
    const auto vectors = b.vectors_behind_attention(layer);
    if (2 * layer >= a.first) b.multiply_qkv(layer);
    if (2 * layer + 1 >= a.end) break;
    b.attend(layer, vectors);
    const bool last = 2 * layer + 2 >= a.end;
    b.multiply_mlp(layer, last);
    if (last) break;
  }
  b.gather();  // no block of the cluster ends before the others have sent it their rows
  if (a.end == a.stages) b.finish(a.stages / 2 - 1);
  b.count_layers();
}

// The numbers are those of the columns and of the rows of a cluster.
extern "C" __global__ void __launch_bounds__(encode_threads, 1) encode_384_16(const __grid_constant__ encode_arguments a) {
  encode<384, 1536, 12, 16>(a);
}
extern "C" __global__ void __launch_bounds__(encode_threads, 1) encode_384_24(const __grid_constant__ encode_arguments a) {
  encode<384, 1536, 12, 24>(a);
}
// Pools rows of clusters that do not run at the same time: a block for each text.
extern "C" __global__ void __launch_bounds__(32 * encode_warps) encode_pool_384(const __grid_constant__ encode_arguments a) {
  wait_for_dependencies();
  pool_text<384>(a);
}

}  // namespace isotope::cuda::gpu
