#pragma once
// How warps of a block, and blocks of different clusters, wait for each other within one launch.
#include "decode/boxes.cuh"

namespace isotope::cuda::gpu {

/// `threads` threads meet at one of the block's 16 barriers; or a thread counts there and goes on.
__device__ inline void some_sync(int barrier, int threads) { asm volatile("bar.sync %0, %1;\n" ::"r"(barrier), "r"(threads) : "memory"); }
__device__ inline void some_arrive(int barrier, int threads) {
  asm volatile("bar.arrive %0, %1;\n" ::"r"(barrier), "r"(threads) : "memory");
}
/// Waits until the phase of this parity has ended: all expected bytes have come from the blocks of the cluster.
__device__ inline void wait_for_sent(std::uint32_t barrier, std::uint32_t parity) {
  asm volatile(
      "{\n.reg .pred ended;\n"
      "again:\n"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 ended, [%0], %1;\n"
      "@ended bra done;\n"
      "bra again;\n"
      "done:\n}\n" ::"r"(barrier),
      "r"(parity)
      : "memory");
}
/// Starts the copy of the box at element (column, row, plane) into shared memory; its bytes count at `barrier`.
__device__ inline void tensor_load(std::uint32_t to, const tensor_map_bytes& map, std::int32_t column, std::int32_t row, std::int32_t plane,
                                   std::uint32_t barrier) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];\n" ::"r"(to),
               "l"(generic_address(map)), "r"(column), "r"(row), "r"(plane), "r"(barrier)
               : "memory");
}
/// A number and a tag, which are written and read together.
__device__ inline void store_word(std::uint64_t at, float x, std::uint32_t tag) {
  const std::uint64_t word = std::uint64_t(tag) << 32 | __float_as_uint(x);
  asm volatile("st.relaxed.gpu.global.b64 [%0], %1;\n" ::"l"(at), "l"(word) : "memory");
}
__device__ inline std::uint64_t load_word(std::uint64_t at) {
  std::uint64_t word;
  asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];\n" : "=l"(word) : "l"(at) : "memory");
  return word;
}
/// Numbers of Count words, `apart` bytes apart, once all of them have the tag.
template <int Count> __device__ inline void wait_for_words(std::uint64_t at, std::uint32_t apart, std::uint32_t tag, float (&x)[Count]) {
  bool all;
  do {
    std::uint64_t word[Count];
#pragma unroll
    for (int i = 0; i < Count; ++i) word[i] = load_word(at + i * apart);
    all = true;
#pragma unroll
    for (int i = 0; i < Count; ++i) all = all && std::uint32_t(word[i] >> 32) == tag, x[i] = __uint_as_float(std::uint32_t(word[i]));
  } while (!all);
  __syncwarp();
}

}  // namespace isotope::cuda::gpu
