#pragma once
/// The arithmetic of all_reduce and reduce_scatter on the host. Every transport of the host calls it, so their bits are equal.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>

#include "../backend/cpu/float_environment.hpp"
#include "../core/precision.hpp"
#include "communicator.hpp"

namespace isotope::comm {

/// Whether numbers of this type can be combined.
constexpr bool combines(dtype t) {
  return t == dtype::f32 || t == dtype::f64 || t == dtype::bf16 || t == dtype::f16 || t == dtype::i32 || t == dtype::i64;
}

/// a + b, where integers wrap around.
struct add {
  template <class A> A operator()(A a, A b) const {
    if constexpr (std::is_integral_v<A>) {
      using wraps = std::make_unsigned_t<A>;
      return A(wraps(a) + wraps(b));
    } else {
      return a + b;
    }
  }
};
/// The greater of a and b: NaN if one of them is NaN, a if they are equal.
struct take_greater {
  template <class A> A operator()(A a, A b) const { return a < b || b != b ? b : a; }
};

/// Source r is x[r], of `elems` numbers of type T. How(...) runs in A; every destination gets the same bits. A destination may be one of the sources.
template <class T, class A, class How>
void combine_as(std::span<const std::byte* const> sources, std::span<std::byte* const> to, std::size_t elems) {
  constexpr std::size_t block = 1024;  // 4 KB of f32, which stay in the L1 cache while the sources pass
  alignas(64) A sum[block];
  alignas(64) T rounded[block];
  const How how;
  for (std::size_t begin = 0; begin < elems; begin += block) {
    const std::size_t n = std::min(block, elems - begin);
    const T* const first = reinterpret_cast<const T*>(sources[0]) + begin;
    for (std::size_t i = 0; i < n; ++i) sum[i] = A(first[i]);
    for (std::size_t r = 1; r < sources.size(); ++r) {
      const T* const x = reinterpret_cast<const T*>(sources[r]) + begin;
      for (std::size_t i = 0; i < n; ++i) sum[i] = how(sum[i], A(x[i]));
    }
    if constexpr (std::is_floating_point_v<A>) {  // which NaN a sum of two has depends on the order in which the compiler takes them
      for (std::size_t i = 0; i < n; ++i) sum[i] = sum[i] != sum[i] ? std::numeric_limits<A>::quiet_NaN() : sum[i];
    }
    for (std::size_t i = 0; i < n; ++i) rounded[i] = T(sum[i]);
    for (std::byte* const y : to) std::memcpy(y + begin * sizeof(T), rounded, n * sizeof(T));
  }
}

template <class T, class A>
void combine_as(std::span<const std::byte* const> sources, std::span<std::byte* const> to, std::size_t elems, reduction how) {
  if (how == reduction::sum) return combine_as<T, A, add>(sources, to, elems);
  combine_as<T, A, take_greater>(sources, to, elems);
}

/// y[i] = ((x[0][i] + x[1][i]) + x[2][i]) + ..., or the same with max, in the accumulation format of `type`, rounded to `type` once. Any NaN becomes the quiet,
/// positive NaN of the type. Subnormals are kept, regardless of the calling thread's mode.
///
/// @param sources  x, at least one, by rank; each of `elems` numbers, aligned to their size
/// @param to       the places of y, any number; one may be a source
/// Precondition: combines(type)
inline void combine(std::span<const std::byte* const> sources, std::span<std::byte* const> to, std::size_t elems, dtype type,
                    reduction how) {
  const cpu::float_environment mode(cpu::subnormals::keep);
  switch (type) {
    case dtype::f32: return combine_as<float, float>(sources, to, elems, how);
    case dtype::f64: return combine_as<double, double>(sources, to, elems, how);
    case dtype::bf16: return combine_as<bfloat16, float>(sources, to, elems, how);
    case dtype::f16: return combine_as<float16, float>(sources, to, elems, how);
    case dtype::i32: return combine_as<std::int32_t, std::int32_t>(sources, to, elems, how);
    case dtype::i64: return combine_as<std::int64_t, std::int64_t>(sources, to, elems, how);
    default: return;
  }
}

/// The numbers that one rank combines on behalf of all: [begin, end) of `elems`. Ranges begin at whole cache lines of the range's first byte.
struct slice {
  std::size_t begin = 0, end = 0;
};
constexpr slice slice_of(std::size_t elems, int rank, int ranks) {
  constexpr std::size_t step = 64;
  const std::size_t each = (elems + std::size_t(ranks) * step - 1) / (std::size_t(ranks) * step) * step;
  return {std::min(elems, each * std::size_t(rank)), std::min(elems, each * std::size_t(rank + 1))};
}
static_assert(slice_of(65, 0, 2).end == 64 && slice_of(65, 1, 2).end == 65 && slice_of(5, 3, 4).begin == 5);

}  // namespace isotope::comm
