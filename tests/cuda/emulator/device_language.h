#pragma once
// Included before every .cu file: CUDA's device language for g++, as far as our kernels use it. A call that is missing here fails to compile.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <type_traits>

#include "runtime.hpp"

#define ISOTOPE_EMULATED_DEVICE 1
#define __CUDA_ARCH__ 800

#define __global__
#define __device__
#define __host__
#define __constant__
#define __shared__ static  // blocks run one after the other
#define __forceinline__ inline __attribute__((always_inline))
#define __grid_constant__
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_assume(x)
#define __builtin_assume_aligned(p, n) (p)

#define threadIdx (::isotope_emulated::isotope_emulated_position.thread)
#define blockIdx (::isotope_emulated::isotope_emulated_position.block)
#define blockDim (::isotope_emulated::isotope_emulated_position.block_size)
#define gridDim (::isotope_emulated::isotope_emulated_position.grid_size)
inline constexpr int warpSize = 32;

#include "device_math.h"
#include "device_vectors.h"

namespace isotope::cuda::gpu {
inline unsigned char* dynamic_shared() { return ::isotope_emulated::isotope_emulated_position.shared; }
}  // namespace isotope::cuda::gpu

inline void __syncthreads(int line = __builtin_LINE()) { ::isotope_emulated::isotope_emulated_barrier(false, line); }
inline int __syncthreads_count(int p, int line = __builtin_LINE()) { return ::isotope_emulated::isotope_emulated_barrier(p != 0, line); }
inline int __syncthreads_or(int p, int line = __builtin_LINE()) { return ::isotope_emulated::isotope_emulated_barrier(p != 0, line) != 0; }
inline int __syncthreads_and(int p, int line = __builtin_LINE()) { return ::isotope_emulated::isotope_emulated_barrier(p == 0, line) == 0; }
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __trap() { ::isotope_emulated::isotope_emulated_fail("trap"); }

namespace isotope_emulated {

struct shuffled {
  std::uint64_t value, result;
  int source;  // a lane
};
inline void shuffle(void* const* operands) {
  for (int lane = 0; lane < 32; ++lane) {
    if (operands[lane] == nullptr) continue;
    auto& mine = *static_cast<shuffled*>(operands[lane]);
    if (operands[mine.source] == nullptr) isotope_emulated_fail("a shuffle reads a lane that takes no part in it");
    mine.result = static_cast<const shuffled*>(operands[mine.source])->value;
  }
}
template <class T> T shuffle_from(std::uint32_t mask, T value, int source, const char* name, int line) {
  static_assert(std::is_trivially_copyable_v<T> && (sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 2));
  shuffled s{0, 0, source};
  std::memcpy(&s.value, &value, sizeof value);
  isotope_emulated_meet(shuffle, mask, &s, name, line);
  std::memcpy(&value, &s.result, sizeof value);
  return value;
}
inline int lane() { return int(isotope_emulated_position.lane); }

struct vote {
  bool value;
  std::uint32_t all;
};
inline void ballot(void* const* operands) {
  std::uint32_t all = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    if (operands[lane] != nullptr && static_cast<const vote*>(operands[lane])->value) all |= 1u << lane;
  for (unsigned lane = 0; lane < 32; ++lane)
    if (operands[lane] != nullptr) static_cast<vote*>(operands[lane])->all = all;
}
inline void nothing(void* const*) {}

struct compared {
  std::int64_t value, least, most;
  std::uint32_t equal;  // lanes with the same value
};
inline void compare(void* const* operands) {
  std::int64_t least = INT64_MAX, most = INT64_MIN;
  for (int lane = 0; lane < 32; ++lane) {
    if (operands[lane] == nullptr) continue;
    auto& mine = *static_cast<compared*>(operands[lane]);
    least = mine.value < least ? mine.value : least, most = mine.value > most ? mine.value : most;
    mine.equal = 0;
    for (int other = 0; other < 32; ++other)
      if (operands[other] != nullptr && static_cast<const compared*>(operands[other])->value == mine.value) mine.equal |= 1u << other;
  }
  for (int lane = 0; lane < 32; ++lane)
    if (operands[lane] != nullptr)
      static_cast<compared*>(operands[lane])->least = least, static_cast<compared*>(operands[lane])->most = most;
}
template <class T> compared compare_all(std::uint32_t mask, T value, const char* name, int line) {
  static_assert(std::is_integral_v<T> && sizeof(T) <= 4);
  compared c{std::int64_t(value), 0, 0, 0};
  isotope_emulated_meet(compare, mask, &c, name, line);
  return c;
}

}  // namespace isotope_emulated

inline void __syncwarp(unsigned mask = 0xffffffffu, int line = __builtin_LINE()) {
  ::isotope_emulated::isotope_emulated_meet(::isotope_emulated::nothing, mask, &mask, "__syncwarp", line);
}
template <class T> T __shfl_sync(unsigned mask, T x, int from, int width = 32, int line = __builtin_LINE()) {
  const int lane = ::isotope_emulated::lane();
  return ::isotope_emulated::shuffle_from(mask, x, (lane & ~(width - 1)) | (from & (width - 1)), "__shfl_sync", line);
}
template <class T> T __shfl_xor_sync(unsigned mask, T x, int bits, int width = 32, int line = __builtin_LINE()) {
  const int lane = ::isotope_emulated::lane(), end = (lane & ~(width - 1)) + width;
  return ::isotope_emulated::shuffle_from(mask, x, (lane ^ bits) < end ? (lane ^ bits) & 31 : lane, "__shfl_xor_sync", line);
}
template <class T> T __shfl_up_sync(unsigned mask, T x, unsigned by, int width = 32, int line = __builtin_LINE()) {
  const int lane = ::isotope_emulated::lane(), begin = lane & ~(width - 1);
  return ::isotope_emulated::shuffle_from(mask, x, lane - int(by) >= begin ? lane - int(by) : lane, "__shfl_up_sync", line);
}
template <class T> T __shfl_down_sync(unsigned mask, T x, unsigned by, int width = 32, int line = __builtin_LINE()) {
  const int lane = ::isotope_emulated::lane(), end = (lane & ~(width - 1)) + width;
  return ::isotope_emulated::shuffle_from(mask, x, lane + int(by) < end ? lane + int(by) : lane, "__shfl_down_sync", line);
}
inline unsigned __ballot_sync(unsigned mask, int p, int line = __builtin_LINE()) {
  ::isotope_emulated::vote v{p != 0, 0};
  ::isotope_emulated::isotope_emulated_meet(::isotope_emulated::ballot, mask, &v, "__ballot_sync", line);
  return v.all;
}
template <class T> unsigned __match_any_sync(unsigned mask, T x, int line = __builtin_LINE()) {
  return ::isotope_emulated::compare_all(mask, x, "__match_any_sync", line).equal;
}
template <class T> T __reduce_min_sync(unsigned mask, T x, int line = __builtin_LINE()) {
  return T(::isotope_emulated::compare_all(mask, x, "__reduce_min_sync", line).least);
}
template <class T> T __reduce_max_sync(unsigned mask, T x, int line = __builtin_LINE()) {
  return T(::isotope_emulated::compare_all(mask, x, "__reduce_max_sync", line).most);
}
inline int __any_sync(unsigned mask, int p, int line = __builtin_LINE()) { return __ballot_sync(mask, p, line) != 0; }
inline int __all_sync(unsigned mask, int p, int line = __builtin_LINE()) { return __ballot_sync(mask, p == 0, line) == 0; }

// Atomics of integers. One thread runs at a time.
template <class T> T atomicAdd(T* at, std::type_identity_t<T> x) {
  static_assert(std::is_integral_v<T>, "sums of floating-point numbers in no fixed order differ from run to run");
  const T old = *at;
  *at = T(old + x);
  return old;
}
template <class T> T atomicExch(T* at, std::type_identity_t<T> x) {
  const T old = *at;
  *at = x;
  return old;
}
template <class T> T atomicMax(T* at, std::type_identity_t<T> x) {
  static_assert(std::is_integral_v<T>);
  return atomicExch(at, *at < x ? x : *at);
}
template <class T> T atomicMin(T* at, std::type_identity_t<T> x) {
  static_assert(std::is_integral_v<T>);
  return atomicExch(at, x < *at ? x : *at);
}
template <class T> T atomicOr(T* at, std::type_identity_t<T> x) { return atomicExch(at, T(*at | x)); }
template <class T> T atomicAnd(T* at, std::type_identity_t<T> x) { return atomicExch(at, T(*at & x)); }
template <class T> T atomicCAS(T* at, std::type_identity_t<T> expected, std::type_identity_t<T> x) {
  return atomicExch(at, *at == expected ? x : *at);
}

template <class T> T __ldg(const T* at) { return *at; }
template <class T> T __ldcs(const T* at) { return *at; }
template <class T> T __ldcg(const T* at) { return *at; }
template <class T> T __ldca(const T* at) { return *at; }
template <class T> void __stcs(T* at, std::type_identity_t<T> x) { *at = x; }
template <class T> void __stcg(T* at, std::type_identity_t<T> x) { *at = x; }
