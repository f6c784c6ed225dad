#pragma once
// What all attention kernels share: which keys a query sees, the order of blocks, and dropout.
#include "../device/access.cuh"
#include "heads.h"

namespace isotope::cuda::gpu {

inline constexpr float log2_e = 1.44269504f;
/// The score of a hidden key. It is finite, because the difference of two infinities is NaN.
inline constexpr float hidden_score = -1e30f;

/// The address of row 0 of a head.
template <class T> __device__ inline T* rows_of(const head_rows& r, int b, int head, int D) {
  return pointer<T>(r.at) + (b * r.batch + std::int64_t(head) * D);
}
/// The keys that query s sees are first_key to end_key - 1.
__device__ inline int first_key(const attention_arguments& a, int s) {
  const int first = s + a.T - a.S + 1 - a.window;
  return a.window != 0 && first > 0 ? first : 0;
}
__device__ inline int end_key(const attention_arguments& a, int s) {
  const int end = s + a.T - a.S + 1;
  return a.causal && end < a.T ? end : a.T;
}
/// The queries that see key t are first_query to end_query - 1.
__device__ inline int first_query(const attention_arguments& a, int t) {
  const int own = t + a.S - a.T;
  return a.causal && own > 0 ? own : 0;
}
__device__ inline int end_query(const attention_arguments& a, int t) {
  const int end = t + a.S - a.T + a.window;
  return a.window != 0 && end < a.S ? (end > 0 ? end : 0) : a.S;
}

/// The block of rows and the head that a block of threads works on.
struct block_place {
  int block, head;
};
/// Orders blocks so that neighbouring heads share caches and blocks with the most work come first: bands of 32 heads, each with all heads
/// of one block of rows after another.
__device__ inline block_place place_of(unsigned index, unsigned blocks, unsigned heads) {
  const unsigned band = index / (32 * blocks), first = band * 32, wide = heads - first < 32 ? heads - first : 32;
  const unsigned rest = index - band * 32 * blocks;
  return {int(rest / wide), int(first + rest % wide)};
}

/// The number of the first query row of a head among those of all devices, by which dropout draws, modulo 2^32. head: b H + h.
__device__ inline std::uint32_t drawn_row(const attention_arguments& a, int b, int head) {
  return (std::uint32_t(head) + a.drawn_first + std::uint32_t(b) * a.drawn_more) * std::uint32_t(a.S);
}

/// Decides which probabilities are dropped: a pure function of seed, step, stream, query and key, as in op::attention_shape::words. Bound
/// by the multiplications of Philox 4x32-10, some 60 instructions for four keys.
struct attention_dropout {
  std::uint32_t key0 = 0, key1 = 0, step = 0, stream = 0, last = 0;

  __device__ explicit attention_dropout(const attention_arguments& a) {
    if (!a.dropped) return;
    const scalars& s = *pointer<const scalars>(a.scalars);
    key0 = std::uint32_t(s.seed);
    key1 = std::uint32_t(s.seed >> 32);
    step = std::uint32_t(s.counter);
    stream = a.stream;
    last = a.last;
  }
  /// Bit i of the result: query row drawn_row + s keeps key 4 k + i.
  __device__ std::uint32_t kept(std::uint32_t row, std::uint32_t k) const {
    std::uint32_t c0 = k, c1 = row, c2 = step, c3 = stream, k0 = key0, k1 = key1;
#pragma unroll
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t p0 = std::uint64_t(0xD2511F53u) * c0, p1 = std::uint64_t(0xCD9E8D57u) * c2;
      c0 = std::uint32_t(p1 >> 32) ^ c1 ^ k0;
      c1 = std::uint32_t(p1);
      c2 = std::uint32_t(p0 >> 32) ^ c3 ^ k1;
      c3 = std::uint32_t(p0);
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    return (c0 > last ? 1u : 0u) | (c1 > last ? 2u : 0u) | (c2 > last ? 4u : 0u) | (c3 > last ? 8u : 0u);
  }
};

}  // namespace isotope::cuda::gpu
