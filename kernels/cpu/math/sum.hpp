#pragma once
/// Reductions of contiguous rows in an order that depends on n alone, not on the address, the processor's vector width or the threads.
///
/// Bound by reading. 64 running sums (32 in f64) hide the latency of an addition. After every chunk of 2048 elements (1024) they are folded in
/// halves, and chunk sums are added in a binary tree. bf16 rows are summed in f32. With u = 2^-24 (f64: 2^-53), a sum of terms t[i] is within
///     (40 + ceil(log2(n / 2048 + 1))) u (|t[0]| + ... + |t[n-1]|)
/// of the exact sum of the rounded terms, to first order in u: 32 additions in a lane, 6 folds, the tree. NaN and infinities are kept.
/// Tried and lost: 64-byte vectors everywhere. g++ keeps them in memory where the processor's vectors are narrower (4.4 elements per ns with AVX2).
#include <cstring>
#include <limits>
#include <utility>

#include <isotope/core/precision.hpp>
#include <isotope/kernels/cpu/math/arithmetic.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::math {

/// One vector register of T, for computing lane by lane.
template <class T> struct lanes_of {
  using type __attribute__((vector_size(config::vector_bytes))) = T;
  static constexpr int count = config::vector_bytes / int(sizeof(T));
};
template <class T> using lanes = typename lanes_of<T>::type;
template <class T> struct sum_type {
  using type = T;
};
template <> struct sum_type<bfloat16> {
  using type = float;
};
template <class T> using sum_t = typename sum_type<T>::type;

ISOTOPE_INLINE void load(const float* x, lanes<float>& v) { std::memcpy(&v, x, sizeof v); }
ISOTOPE_INLINE void load(const double* x, lanes<double>& v) { std::memcpy(&v, x, sizeof v); }
ISOTOPE_INLINE void load(const bfloat16* x, lanes<float>& v) {
  using half __attribute__((vector_size(config::vector_bytes / 2))) = std::uint16_t;
  half h;
  std::memcpy(&h, x, sizeof h);
  const lanes<std::uint32_t> wide = __builtin_convertvector(h, lanes<std::uint32_t>) << 16;
  std::memcpy(&v, &wide, sizeof v);
}

/// Calls f(0), f(1), ... with constants, so that an array indexed by them can stay in registers.
template <std::size_t... P, class F> ISOTOPE_INLINE void unrolled(std::index_sequence<P...>, const F& f) {
  (f(std::integral_constant<std::size_t, P>{}), ...);
}

/// Sets lane i to combine(lane i, lane i + half) for each half in turn and returns lane 0.
template <int Half, class V, class Combine, std::size_t... I>
ISOTOPE_INLINE void fold_halves(V& v, const Combine& combine, std::index_sequence<I...> all) {
  const V upper = __builtin_shufflevector(v, v, int((I + Half) % sizeof...(I))...);
  combine(v, upper);
  if constexpr (Half > 1) fold_halves<Half / 2>(v, combine, all);
}
template <class T, class Combine> ISOTOPE_INLINE T fold(lanes<T>& v, const Combine& combine) {
  constexpr int count = lanes_of<T>::count;
  fold_halves<count / 2>(v, combine, std::make_index_sequence<std::size_t(count)>{});
  return v[0];
}

/// As above for an array of vectors; the result is a[0].
template <std::size_t Half, class V, class Combine> ISOTOPE_INLINE void fold_parts(V* a, const Combine& combine) {
  unrolled(std::make_index_sequence<Half>{}, [&](auto p) ISOTOPE_INLINE_LAMBDA { combine(a[p], a[p + Half]); });
  if constexpr (Half > 1) fold_parts<Half / 2>(a, combine);
}

/// A reduction: its start value, how it joins two partial results, and the most elements between two folds.
struct addition {
  template <class T> static constexpr T start = T(0);
  static constexpr std::int64_t chunk_groups = 32;
  template <class V> ISOTOPE_INLINE void operator()(V& a, const V& b) const { a += b; }
};
/// Takes the larger number, or NaN if either is NaN.
struct larger {
  template <class T> static constexpr T start = -std::numeric_limits<T>::infinity();
  static constexpr std::int64_t chunk_groups = std::int64_t(1) << 40;
  template <class V> ISOTOPE_INLINE void operator()(V& a, const V& b) const { a = ((b > a) | (b != b)) ? b : a; }
};

template <class X> struct padded_lanes {
  X at[lanes_of<sum_t<X>>::count] = {};
  padded_lanes(const X* x, int n) {
    for (int j = 0; j < n; ++j) at[j] = x[j];
  }
};

template <class T, class Term, std::size_t... I, class... X>
ISOTOPE_INLINE void apply_term(const Term& term, lanes<T>& t, std::index_sequence<I...>, const X*... x) {
  lanes<T> v[sizeof...(X)];  // passed by reference, because the calling convention of wide vectors depends on the processor
  (load(x, v[I]), ...);
  term(t, v[I]...);
}

/// Reduces term(x0[i], x1[i], ...) over 0 <= i < n in the order above; every x has the same sum type T.
/// @param term  void(lanes<T>& t, const lanes<T>& x0, ...): writes its result to t
template <class T, class Combine, class Term, class... X>
ISOTOPE_INLINE T reduce(std::int64_t n, const Combine& combine, const Term& term, const X*... x) {
  constexpr std::int64_t count = lanes_of<T>::count, group = 256 / int(sizeof(T)), chunk = Combine::chunk_groups * group;
  constexpr auto parts = std::make_index_sequence<std::size_t(group / count)>{};
  constexpr auto each = std::index_sequence_for<X...>{};
  constexpr T start = Combine::template start<T>;
  T tree[64];  // if bit b of `done` is set, the slot of level b holds 2^b chunks
  std::uint64_t done = 0;
  for (std::int64_t begin = 0; begin < n; begin += chunk) {
    const std::int64_t end = n - begin > chunk ? begin + chunk : n;
    lanes<T> a[parts.size()];
    unrolled(parts, [&](auto p) ISOTOPE_INLINE_LAMBDA { a[p] = lanes<T>{} + start; });
    std::int64_t i = begin;
    for (; i + group <= end; i += group) {
      unrolled(parts, [&](auto p) ISOTOPE_INLINE_LAMBDA {
        lanes<T> t;
        apply_term<T>(term, t, each, (x + i + std::int64_t(p) * count)...);
        combine(a[p], t);
      });
    }
    unrolled(parts, [&](auto p) ISOTOPE_INLINE_LAMBDA {
      const std::int64_t at = i + std::int64_t(p) * count;
      if (at >= end) return;
      const int rest = int(end - at < count ? end - at : count);
      lanes<T> t;
      apply_term<T>(term, t, each, padded_lanes<X>(x + at, rest).at...);
      for (int j = rest; j < count; ++j) t[j] = start;
      combine(a[p], t);
    });
    fold_parts<parts.size() / 2>(a, combine);
    T value = fold<T>(a[0], combine);
    int level = 0;
    for (; (done >> level) & 1u; ++level) {
      T earlier = tree[level];
      combine(earlier, value);
      value = earlier;
    }
    tree[level] = value;
    ++done;
  }
  T total = start;
  for (int level = 0; level < 63; ++level) {
    if (!((done >> level) & 1u)) continue;
    T earlier = tree[level];
    combine(earlier, total);
    total = earlier;
  }
  return total;
}

/// x[0] + ... + x[n-1]; 0 for n = 0.
template <class T> sum_t<T> sum(const T* x, std::int64_t n) {
  return reduce<sum_t<T>>(n, addition{}, [](auto& t, const auto& v) { t = v; }, x);
}
/// x[0]^2 + ... + x[n-1]^2.
template <class T> sum_t<T> sum_squares(const T* x, std::int64_t n) {
  return reduce<sum_t<T>>(n, addition{}, [](auto& t, const auto& v) { t = v * v; }, x);
}
/// (x[0] - mean)^2 + ... + (x[n-1] - mean)^2: n times the variance, without the cancellation of E[x^2] - E[x]^2.
template <class T> sum_t<T> sum_squares_about(const T* x, std::int64_t n, sum_t<T> mean) {
  auto term = [mean](auto& t, const auto& v) {
    const auto d = v - mean;
    t = d * d;
  };
  return reduce<sum_t<T>>(n, addition{}, term, x);
}
/// a[0] b[0] + ... + a[n-1] b[n-1], each product rounded.
template <class A, class B> sum_t<A> dot(const A* a, const B* b, std::int64_t n) {
  return reduce<sum_t<A>>(n, addition{}, [](auto& t, const auto& u, const auto& v) { t = u * v; }, a, b);
}
/// The largest x[i], NaN if one of them is NaN; -inf for n = 0. Exact.
template <class T> sum_t<T> max(const T* x, std::int64_t n) {
  return reduce<sum_t<T>>(n, larger{}, [](auto& t, const auto& v) { t = v; }, x);
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::math
