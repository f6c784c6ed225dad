// Exchanges between GPUs that reach each other's memory: one launch on each, which meet by messages (exchange.cuh). A rank reads the numbers of all ranks and combines
// them in the order of the ranks, so its bits are those of comm::combine. Bound by the links: all_reduce reads and writes (ranks - 1) / ranks of the bytes through
// them, the others pass as much in one direction. Each thread has `flight` loads of 16 bytes from every rank under way, which hides the time of a load through a link: with
// 4 of them 32 blocks of 512 threads reach what NVLink gives, so that most multiprocessors are left to other kernels.
#include "exchange.h"

#include "exchange.cuh"

namespace isotope::cuda::gpu {

inline constexpr int exchange_threads = 512;

template <int T> struct exchanged;
template <> struct exchanged<f32> {
  using stored = float;
  using wide = float;
  __device__ static wide value(stored x) { return x; }
  __device__ static stored rounded(wide x) { return x == x ? x : __uint_as_float(0x7fc00000u); }
};
template <> struct exchanged<bf16> {
  using stored = std::uint16_t;
  using wide = float;
  __device__ static wide value(stored x) { return bf16_value(x); }
  __device__ static stored rounded(wide x) { return x == x ? bf16_bits(x) : stored(0x7fc0); }
};
template <> struct exchanged<f16> {
  using stored = std::uint16_t;
  using wide = float;
  __device__ static wide value(stored x) { return f16_value(x); }
  __device__ static stored rounded(wide x) { return x == x ? f16_bits(x) : stored(0x7e00); }
};
template <> struct exchanged<f64> {
  using stored = double;
  using wide = double;
  __device__ static wide value(stored x) { return x; }
  __device__ static stored rounded(wide x) { return x == x ? x : __longlong_as_double(0x7ff8000000000000ll); }
};
template <class Integer> struct exchanged_integer {
  using stored = Integer;
  using wide = Integer;
  __device__ static wide value(stored x) { return x; }
  __device__ static stored rounded(wide x) { return x; }
};
template <> struct exchanged<i32> : exchanged_integer<std::uint32_t> {
  __device__ static bool less(std::uint32_t a, std::uint32_t b) { return std::int32_t(a) < std::int32_t(b); }
};
template <> struct exchanged<i64> : exchanged_integer<std::uint64_t> {
  __device__ static bool less(std::uint64_t a, std::uint64_t b) { return std::int64_t(a) < std::int64_t(b); }
};

/// a + b, or the greater of both: NaN if one is NaN, a if they are equal.
template <int T>
__device__ inline typename exchanged<T>::wide combined(typename exchanged<T>::wide a, typename exchanged<T>::wide b, bool maximum) {
  if (!maximum) return a + b;
  if constexpr (T == i32 || T == i64) return exchanged<T>::less(a, b) ? b : a;
  else return a < b || b != b ? b : a;
}

/// 16 bytes as numbers.
template <int T> struct exchanged_vector {
  static constexpr int size = 16 / int(sizeof(typename exchanged<T>::stored));
  typename exchanged<T>::stored x[size];
};
template <int T> __device__ inline exchanged_vector<T> numbers_of(const uint4& bits) {
  exchanged_vector<T> v;
  memcpy(&v, &bits, sizeof v);
  return v;
}

/// The places of one exchange: rank p's numbers begin `skip` bytes behind from[p], and results go to each of `targets` addresses.
struct exchange_places {
  const std::uint64_t *from, *to;
  std::uint64_t skip;
  int ranks, targets;
};

/// Combines the numbers of all ranks at [begin, end), in units of 16 bytes. R: the number of ranks; 0: any.
template <int T, int R, int flight>
__device__ inline void combine_vectors(const exchange_places& at, std::int64_t begin, std::int64_t end, bool maximum) {
  using number = exchanged<T>;
  constexpr int size = exchanged_vector<T>::size, held = R == 0 ? 1 : R;
  const std::int64_t step = std::int64_t(gridDim.x) * blockDim.x * flight;
  for (std::int64_t i = begin + (std::int64_t(blockIdx.x) * flight) * blockDim.x + threadIdx.x; i < end; i += step) {
    typename number::wide sums[flight][size];
    uint4 bits[held][flight];
#pragma unroll
    for (int p = 0; p < held; ++p)
#pragma unroll
      for (int k = 0; k < flight; ++k) {
        const std::int64_t v = i + std::int64_t(k) * blockDim.x;
        if (v < end) bits[p][k] = load_shared_memory(at.from[p] + at.skip + std::uint64_t(v) * 16);
      }
#pragma unroll
    for (int k = 0; k < flight; ++k) {
      const auto first = numbers_of<T>(bits[0][k]);
#pragma unroll
      for (int j = 0; j < size; ++j) sums[k][j] = number::value(first.x[j]);
#pragma unroll
      for (int p = 1; p < held; ++p) {
        const auto next = numbers_of<T>(bits[p][k]);
#pragma unroll
        for (int j = 0; j < size; ++j) sums[k][j] = combined<T>(sums[k][j], number::value(next.x[j]), maximum);
      }
    }
    for (int p = 1; R == 0 && p < at.ranks; ++p) {
#pragma unroll
      for (int k = 0; k < flight; ++k) {
        const std::int64_t v = i + std::int64_t(k) * blockDim.x;
        if (v < end) bits[0][k] = load_shared_memory(at.from[p] + at.skip + std::uint64_t(v) * 16);
      }
#pragma unroll
      for (int k = 0; k < flight; ++k) {
        const auto next = numbers_of<T>(bits[0][k]);
#pragma unroll
        for (int j = 0; j < size; ++j) sums[k][j] = combined<T>(sums[k][j], number::value(next.x[j]), maximum);
      }
    }
#pragma unroll
    for (int k = 0; k < flight; ++k) {
      const std::int64_t v = i + std::int64_t(k) * blockDim.x;
      if (v >= end) continue;
      exchanged_vector<T> rounded;
#pragma unroll
      for (int j = 0; j < size; ++j) rounded.x[j] = number::rounded(sums[k][j]);
      uint4 out;
      memcpy(&out, &rounded, sizeof out);
      for (int t = 0; t < at.targets; ++t) store_shared_memory(at.to[t] + std::uint64_t(v) * 16, out);
    }
  }
}
/// The same for single numbers.
template <int T> __device__ inline void combine_numbers(const exchange_places& at, std::int64_t begin, std::int64_t end, bool maximum) {
  using number = exchanged<T>;
  for (std::int64_t i = begin + item(); i < end; i += std::int64_t(gridDim.x) * blockDim.x) {
    const auto of = [&](int p) { return number::value(pointer<const typename number::stored>(at.from[p] + at.skip)[i]); };
    auto sum = of(0);
    for (int p = 1; p < at.ranks; ++p) sum = combined<T>(sum, of(p), maximum);
    for (int t = 0; t < at.targets; ++t) pointer<typename number::stored>(at.to[t])[i] = number::rounded(sum);
  }
}

/// all_reduce: rank r combines slice r and writes it to all ranks. reduce_scatter: rank r combines piece r for itself.
template <int T, int flight> __device__ inline void reduce(const exchange_operands& a) {
  __shared__ exchange_meeting m;
  if (meet(a, m)) {
    constexpr std::int64_t bytes = sizeof(typename exchanged<T>::stored), size = 16 / bytes;
    const bool all = a.kind == exchange_all_reduce, maximum = a.maximum != 0;
    const exchange_places at{m.from, all ? m.to : m.to + a.rank, all ? 0 : std::uint64_t(a.rank * a.count * bytes), a.ranks,
                             all ? a.ranks : 1};
    std::uint64_t addresses = at.skip;
    for (int p = 0; p < a.ranks; ++p) addresses |= m.from[p];
    for (int t = 0; t < at.targets; ++t) addresses |= at.to[t];
    // All ranks know all addresses of an all_reduce, so they divide its numbers in the same way.
    const std::int64_t vectors = addresses % 16 == 0 ? a.count / size : 0;
    const std::int64_t first = all ? vectors * a.rank / a.ranks : 0, end = all ? vectors * (a.rank + 1) / a.ranks : vectors;
    if (a.ranks == 2) combine_vectors<T, 2, flight>(at, first, end, maximum);
    else combine_vectors<T, 0, flight>(at, first, end, maximum);
    const std::int64_t rest = a.count - vectors * size;
    const std::int64_t rest_first = vectors * size + (all ? rest * a.rank / a.ranks : 0);
    const std::int64_t rest_end = vectors * size + (all ? rest * (a.rank + 1) / a.ranks : rest);
    combine_numbers<T>(at, rest_first, rest_end, maximum);
  }
  leave(a, m);
}

/// Copies from another rank, which may be this one.
template <int flight> __device__ inline void copy_bytes(std::uint64_t from, std::uint64_t to, std::int64_t bytes) {
  if (from == to) return;
  const std::int64_t vectors = (from | to) % 16 == 0 ? bytes / 16 : 0, step = std::int64_t(gridDim.x) * blockDim.x * flight;
  for (std::int64_t i = std::int64_t(blockIdx.x) * flight * blockDim.x + threadIdx.x; i < vectors; i += step) {
    uint4 bits[flight];
#pragma unroll
    for (int k = 0; k < flight; ++k) {
      const std::int64_t v = i + std::int64_t(k) * blockDim.x;
      if (v < vectors) bits[k] = load_shared_memory(from + std::uint64_t(v) * 16);
    }
#pragma unroll
    for (int k = 0; k < flight; ++k) {
      const std::int64_t v = i + std::int64_t(k) * blockDim.x;
      if (v < vectors) store_shared_memory(to + std::uint64_t(v) * 16, bits[k]);
    }
  }
  for (std::int64_t i = vectors * 16 + item(); i < bytes; i += std::int64_t(gridDim.x) * blockDim.x)
    pointer<std::uint8_t>(to)[i] = pointer<const std::uint8_t>(from)[i];
}

extern "C" __global__ void __launch_bounds__(exchange_threads) exchange_f32(const __grid_constant__ exchange_operands a) {
  reduce<f32, 4>(a);
}
extern "C" __global__ void __launch_bounds__(exchange_threads) exchange_bf16(const __grid_constant__ exchange_operands a) {
  reduce<bf16, 4>(a);
}
extern "C" __global__ void __launch_bounds__(exchange_threads) exchange_f16(const __grid_constant__ exchange_operands a) {
  reduce<f16, 4>(a);
}
extern "C" __global__ void __launch_bounds__(exchange_threads) exchange_f64(const __grid_constant__ exchange_operands a) {
  reduce<f64, 4>(a);
}
extern "C" __global__ void __launch_bounds__(exchange_threads) exchange_i32(const __grid_constant__ exchange_operands a) {
  reduce<i32, 4>(a);
}
extern "C" __global__ void __launch_bounds__(exchange_threads) exchange_i64(const __grid_constant__ exchange_operands a) {
  reduce<i64, 4>(a);
}

/// all_gather: a rank writes its part to all ranks, since stores through a link need fewer threads than loads, beginning with its neighbour so that they do not all write
/// to one. broadcast: x of the root.
extern "C" __global__ void __launch_bounds__(exchange_threads) exchange_copies(const __grid_constant__ exchange_operands a) {
  __shared__ exchange_meeting m;
  constexpr int flight = 4;
  if (meet(a, m)) {
    if (a.kind == exchange_broadcast) copy_bytes<flight>(m.from[a.root], a.to, a.count);
    for (int k = 1; a.kind == exchange_all_gather && k <= a.ranks; ++k)
      copy_bytes<flight>(a.from, m.to[(a.rank + k) % a.ranks] + std::uint64_t(a.rank * a.count), a.count);
  }
  leave(a, m);
}

}  // namespace isotope::cuda::gpu
