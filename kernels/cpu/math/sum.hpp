#pragma once
/// Reductions of contiguous rows in an order that depends on n alone: not on the address, the processor's vector width or the threads.
///
/// Bound by reading. Four vectors of running sums hide the latency of an addition; after every chunk of 2048 elements (1024 in f64) they are
/// folded in halves, and chunk sums are added in a binary tree. bf16 rows are summed in f32. With u = 2^-24 (f64: 2^-53), a sum of terms t[i] is
/// within
///     (40 + ceil(log2(n / 2048 + 1))) u (|t[0]| + ... + |t[n-1]|)
/// of the exact sum of the rounded terms, to first order in u: 32 additions in a lane, 6 folds, the tree. NaN and infinities come through.
#include <cstring>
#include <limits>
#include <utility>

#include <isotope/core/precision.hpp>
#include <isotope/kernels/cpu/math/arithmetic.hpp>

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
namespace math {

/// 64 bytes of T that are calculated with together, lane by lane. Narrower processors use several registers.
template <class T> struct lanes_of {
  using type __attribute__((vector_size(64))) = T;
  static constexpr int count = 64 / sizeof(T);
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
  using half __attribute__((vector_size(32))) = std::uint16_t;
  half h;
  std::memcpy(&h, x, sizeof h);
  const lanes<std::uint32_t> wide = __builtin_convertvector(h, lanes<std::uint32_t>) << 16;
  std::memcpy(&v, &wide, sizeof v);
}

/// Lane i becomes combine(lane i, lane i + half) for each half in turn; the answer is lane 0.
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

/// What a reduction is made of: where it starts, how two partial results are joined, the most elements between two folds.
struct addition {
  template <class T> static constexpr T start = T(0);
  static constexpr int chunk_vectors = 128;
  template <class V> ISOTOPE_INLINE void operator()(V& a, const V& b) const { a += b; }
};
/// The larger, or NaN if either is NaN.
struct larger {
  template <class T> static constexpr T start = -std::numeric_limits<T>::infinity();
  static constexpr int chunk_vectors = 1 << 20;
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
  lanes<T> v[sizeof...(X)];  // passed by reference: the calling convention of wide vectors depends on the processor
  (load(x, v[I]), ...);
  term(t, v[I]...);
}

/// Reduces term(x0[i], x1[i], ...) over 0 <= i < n in the order above; every x has the same sum type T.
/// @param term  void(lanes<T>& t, const lanes<T>& x0, ...): writes its result to t
template <class T, class Combine, class Term, class... X>
ISOTOPE_INLINE T reduce(std::int64_t n, const Combine& combine, const Term& term, const X*... x) {
  constexpr int count = lanes_of<T>::count, group = 4 * count;
  constexpr std::int64_t chunk = std::int64_t(Combine::chunk_vectors) * count;
  constexpr T start = Combine::template start<T>;
  constexpr auto each = std::index_sequence_for<X...>{};
  T tree[64];  // bit b of `done` set: the slot of level b holds 2^b chunks
  std::uint64_t done = 0;
  for (std::int64_t begin = 0; begin < n; begin += chunk) {
    const std::int64_t end = begin + chunk < n ? begin + chunk : n;
    lanes<T> a0 = lanes<T>{} + start, a1 = a0, a2 = a0, a3 = a0, t;
    std::int64_t i = begin;
    for (; i + group <= end; i += group) {
      apply_term<T>(term, t, each, (x + i)...), combine(a0, t);
      apply_term<T>(term, t, each, (x + i + count)...), combine(a1, t);
      apply_term<T>(term, t, each, (x + i + 2 * count)...), combine(a2, t);
      apply_term<T>(term, t, each, (x + i + 3 * count)...), combine(a3, t);
    }
    for (int part = 0; i < end; i += count, ++part) {
      const int rest = int(end - i < count ? end - i : count);
      apply_term<T>(term, t, each, padded_lanes<X>(x + i, rest).at...);
      for (int j = rest; j < count; ++j) t[j] = start;
      combine(part == 0 ? a0 : part == 1 ? a1 : part == 2 ? a2 : a3, t);
    }
    combine(a0, a2), combine(a1, a3), combine(a0, a1);
    T value = fold<T>(a0, combine);
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

}  // namespace math
}  // namespace arch
}  // namespace isotope::cpu
