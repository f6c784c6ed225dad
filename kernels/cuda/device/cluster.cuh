#pragma once
// What blocks that run at the same time pass to each other. Blocks of a cluster write numbers into each other's shared memory, whose bytes count at a barrier there; those of different
// clusters store words that the others wait for.
#include "hopper.cuh"

namespace isotope::cuda::gpu {

#if !defined(ISOTOPE_EMULATED_DEVICE)
__device__ inline std::uint32_t cluster_rank() {
  std::uint32_t r;
  asm volatile("mov.u32 %0, %%cluster_ctarank;\n" : "=r"(r));
  return r;
}
/// The address in block `rank` of the cluster of what is at this address of shared memory.
__device__ inline std::uint32_t address_in(std::uint32_t own, std::uint32_t rank) {
  std::uint32_t there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;\n" : "=r"(there) : "r"(own), "r"(rank));
  return there;
}
/// Writes numbers to the place of `own` in block `rank`; their bytes count at its barrier.
__device__ inline void send(const float* own, std::uint32_t barrier, std::uint32_t rank, float x) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];\n" ::"r"(address_in(shared_address(own), rank)),
               "f"(x), "r"(address_in(barrier, rank))
               : "memory");
}
__device__ inline void send(const float* own, std::uint32_t barrier, std::uint32_t rank, float x, float y) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1,%2}, [%3];\n" ::"r"(address_in(shared_address(own), rank)),
      "f"(x), "f"(y), "r"(address_in(barrier, rank))
      : "memory");
}
__device__ inline void send(const float* own, std::uint32_t barrier, std::uint32_t rank, const float4& x) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1,%2,%3,%4}, [%5];\n" ::"r"(
                   address_in(shared_address(own), rank)),
               "f"(x.x), "f"(x.y), "f"(x.z), "f"(x.w), "r"(address_in(barrier, rank))
               : "memory");
}
/// The two parts of cluster_sync: what a thread does between them waits for no other block.
__device__ inline void cluster_arrive() { asm volatile("barrier.cluster.arrive.release;\n" ::: "memory"); }
__device__ inline void cluster_wait() { asm volatile("barrier.cluster.wait.acquire;\n" ::: "memory"); }
/// Writes a word to the place of `own` in block `rank`; its bytes count at its barrier.
__device__ inline void send(const std::uint32_t* own, std::uint32_t barrier, std::uint32_t rank, std::uint32_t x) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];\n" ::"r"(address_in(shared_address(own), rank)),
               "r"(x), "r"(address_in(barrier, rank))
               : "memory");
}

/// Waits until the phase of this parity has ended: all expected bytes have come from the blocks of the cluster, and are visible.
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
/// A number in the shared memory of block `rank` of the cluster, at the offset of this block's own.
__device__ inline float cluster_load(const float& own, std::uint32_t rank) {
  float x;
  asm volatile(
      "{\n.reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %1, %2;\n"
      "ld.shared::cluster.f32 %0, [there];\n}\n"
      : "=f"(x)
      : "r"(shared_address(&own)), "r"(rank)
      : "memory");
  return x;
}

/// All threads of all blocks of the cluster meet; writes to shared memory before it are visible behind it.
__device__ inline void cluster_sync() { asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;\n" ::: "memory"); }

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
/// Two numbers whose last bits are `mark`. They need not be written together.
__device__ inline void store_marked(std::uint64_t at, float x, float y, std::uint32_t mark) {
  const std::uint32_t u = (__float_as_uint(x) & ~1u) | mark, v = (__float_as_uint(y) & ~1u) | mark;
  asm volatile("st.relaxed.gpu.global.v2.b32 [%0], {%1,%2};\n" ::"l"(at), "r"(u), "r"(v) : "memory");
}
/// Reads the bits of four numbers where `wanted`.
__device__ inline void load_marked(std::uint64_t at, bool wanted, uint4& x) {
  asm volatile(
      "{\n.reg .pred wanted;\n"
      "setp.ne.b32 wanted, %5, 0;\n"
      "@wanted ld.relaxed.gpu.global.v4.b32 {%0,%1,%2,%3}, [%4];\n}\n"
      : "+r"(x.x), "+r"(x.y), "+r"(x.z), "+r"(x.w)
      : "l"(at), "r"(int(wanted))
      : "memory");
}
#endif

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
