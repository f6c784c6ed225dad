#pragma once
/// Reads and writes rows of f32 or bf16 as vectors of f32: loads widen and stores round in registers, and memory behind a row is not touched.
#include <isotope/kernels/cpu/math/convert.hpp>
#include <isotope/kernels/cpu/math/sum.hpp>
#include <isotope/kernels/cpu/native/gemm/blocking.hpp>
#include <isotope/kernels/cpu/native/math/lanes.hpp>
#include <isotope/kernels/cpu/rows/rows.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

using portable::for_rows;
using portable::for_tasks;
using portable::row_chunks;

/// How much of a vector belongs to a row: the whole vector, or 0 < n < lanes elements.
struct whole_vector {};
struct part_of_vector {
  int n;
  std::uint16_t mask() const { return std::uint16_t((1u << n) - 1); }
};

/// x[0] ... x[lanes - 1].
ISOTOPE_INLINE vector load(const float* x, whole_vector) {
  vector v;
  __builtin_memcpy(&v, x, sizeof v);
  return v;
}
ISOTOPE_INLINE vector load(const bfloat16* x, whole_vector) { return std::bit_cast<vector>(math::bf16_lanes::widened(x)); }
ISOTOPE_INLINE void store(float* y, const vector& v, whole_vector) { __builtin_memcpy(y, &v, sizeof v); }
ISOTOPE_INLINE void store(bfloat16* y, const vector& v, whole_vector) {
  math::bf16_lanes::put_rounded(std::bit_cast<math::bf16_lanes::words>(v), y);
}

/// Stores two vectors.
ISOTOPE_INLINE void store(float* y, const vector& v, const vector& w) {
  store(y, v, whole_vector{});
  store(y + lanes, w, whole_vector{});
}
ISOTOPE_INLINE void store(bfloat16* y, const vector& v, const vector& w) {
  math::bf16_lanes::put_two_rounded(std::bit_cast<math::bf16_lanes::words>(v), std::bit_cast<math::bf16_lanes::words>(w), y);
}

/// Rounds v as T stores it.
template <class T> ISOTOPE_INLINE vector as_stored(const vector& v) {
  if constexpr (std::is_same_v<T, float>) return v;
  else return std::bit_cast<vector>(math::bf16_lanes::rounded(std::bit_cast<math::bf16_lanes::words>(v)) & 0xffff'0000u);
}

/// Loads x[0] ... x[n - 1], then zeros.
ISOTOPE_INLINE vector load(const float* x, part_of_vector p) {
  vector v{};
  if constexpr (config::has_lane_masks) {
    isa::load_lanes(v, x, p.mask());
  } else {
    for (int i = 0; i < p.n; ++i) v[i] = x[i];
  }
  return v;
}
ISOTOPE_INLINE vector load(const bfloat16* x, part_of_vector p) {
  math::bf16_lanes::halves v{};
  if constexpr (config::has_lane_masks) {
    isa::load_lanes(v, x, p.mask());
  } else {
    for (int i = 0; i < p.n; ++i) v[i] = x[i].bits;
  }
  return std::bit_cast<vector>(math::bf16_lanes::widened(v));
}
ISOTOPE_INLINE void store(float* y, const vector& v, part_of_vector p) {
  if constexpr (config::has_lane_masks) {
    isa::store_lanes(y, v, p.mask());
  } else {
    for (int i = 0; i < p.n; ++i) y[i] = v[i];
  }
}
ISOTOPE_INLINE void store(bfloat16* y, const vector& v, part_of_vector p) {
  bfloat16 whole[lanes];
  store(whole, v, whole_vector{});
  if constexpr (config::has_lane_masks) {
    math::bf16_lanes::halves r;
    __builtin_memcpy(&r, whole, sizeof r);
    isa::store_lanes(y, r, p.mask());
  } else {
    for (int i = 0; i < p.n; ++i) y[i] = whole[i];
  }
}

/// Returns v where the row has elements, `rest` behind it.
ISOTOPE_INLINE vector within(const vector& v, whole_vector, float = 0) { return v; }
ISOTOPE_INLINE vector within(const vector& v, part_of_vector p, float rest = 0) {
  using whole_numbers __attribute__((vector_size(config::vector_bytes))) = std::int32_t;
  whole_numbers place{};
  for (int i = 0; i < int(lanes); ++i) place[i] = i;
  return place < p.n ? v : lanewise::all(rest);
}

/// Calls f(j, part, amount) for each vector of n columns, j its first column. Whole groups use parts 0 to Parts - 1 in turn, later vectors part 0.
template <int Parts, class F> ISOTOPE_INLINE void for_vectors(std::int64_t n, const F& f) {
  using first = std::integral_constant<std::size_t, 0>;
  std::int64_t j = 0;
  for (; j + Parts * lanes <= n; j += Parts * lanes)
    math::unrolled(std::make_index_sequence<std::size_t(Parts)>{},
                   [&](auto part) ISOTOPE_INLINE_LAMBDA { f(j + std::int64_t(part) * lanes, part, whole_vector{}); });
  if constexpr (Parts > 1)
    for (; j + lanes <= n; j += lanes) f(j, first{}, whole_vector{});
  if (j < n) f(j, first{}, part_of_vector{int(n - j)});
}
template <class F> ISOTOPE_INLINE void for_vectors(std::int64_t n, const F& f) {
  for_vectors<1>(n, [&](std::int64_t j, auto, auto amount) ISOTOPE_INLINE_LAMBDA { f(j, amount); });
}

/// y[j] = f(j, amount) for n columns. bf16 results are stored two vectors at a time.
template <class T, class F> ISOTOPE_INLINE void put_columns(std::int64_t n, T* y, const F& f) {
  std::int64_t j = 0;
  for (; j + 2 * lanes <= n; j += 2 * lanes) {
    const vector v = f(j, whole_vector{}), w = f(j + lanes, whole_vector{});
    store(y + j, v, w);
  }
  for (; j + lanes <= n; j += lanes) store(y + j, f(j, whole_vector{}), whole_vector{});
  if (j < n) {
    const part_of_vector rest{int(n - j)};
    store(y + j, f(j, rest), rest);
  }
}

/// Computes sums over n columns: f(sum, j, amount) adds the contribution of the vector at column j to sum[0] ... sum[Sums - 1]. A lane adds at most
/// 128 / Parts numbers in f32; lanes are then added as a tree, and blocks of 2048 columns in f64 one after another.
template <int Sums, int Parts, class F> ISOTOPE_INLINE void sum_columns(std::int64_t n, float (&y)[Sums], const F& f) {
  constexpr std::int64_t block = 128 * lanes;
  constexpr auto each = std::make_index_sequence<std::size_t(Sums)>{};
  double total[Sums] = {};
  for (std::int64_t first = 0; first < n; first += block) {
    vector sum[Parts][Sums] = {};
    for_vectors<Parts>(smaller(block, n - first),
                       [&](std::int64_t j, auto part, auto amount) ISOTOPE_INLINE_LAMBDA { f(sum[part], first + j, amount); });
    math::unrolled(each, [&](auto s) ISOTOPE_INLINE_LAMBDA {
      math::unrolled(std::make_index_sequence<std::size_t(Parts - 1)>{},
                     [&](auto part) ISOTOPE_INLINE_LAMBDA { sum[0][s] += sum[part + 1][s]; });
      total[s] += double(math::fold<float>(sum[0][s], math::addition{}));
    });
  }
  for (int s = 0; s < Sums; ++s) y[s] = float(total[s]);
}

/// Calls f(T()) if all of these formats are f32 or all are bf16, T being that type; returns whether they are.
template <class F> bool with_format(std::initializer_list<dtype> formats, const F& f) {
  const dtype t = *formats.begin();
  for (const dtype other : formats)
    if (other != t) return false;
  if (t == dtype::f32) f(float());
  else if (t == dtype::bf16) f(bfloat16());
  return t == dtype::f32 || t == dtype::bf16;
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
