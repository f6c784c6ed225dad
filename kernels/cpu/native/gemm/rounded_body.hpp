#pragma once
/// The fused bodies that products of bf16 finish in registers, each step rounded to bf16, and how.
///
/// Bound by the vector instructions, of which two ports take 512 bits. Two vectors at a time are rounded to bf16 by one instruction, whose result a shift and a
/// mask widen again, those in even places and those in odd ones, so that only the last result is put in order: a dozen instructions for 32 sums and a
/// bias, where rounding by integers took twice as many. GELU takes those of two rows in step.
#include <isotope/kernels/cpu/gemm/epilogue.hpp>
#include <isotope/kernels/cpu/native/gemm/known_body.hpp>
#include <isotope/kernels/cpu/native/gemm/pairs.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// 32 numbers of a row: those in even and those in odd places.
struct even_and_odd {
  vector even, odd;

  static ISOTOPE_INLINE even_and_odd of(const words& w) {
    return {std::bit_cast<vector>(w << 16), std::bit_cast<vector>(w & 0xffff'0000u)};
  }
  /// The sums of a row, in the order of memory: the first and the second vector of `blocks` blocks of K, `apart` floats from one to the next.
  static ISOTOPE_INLINE even_and_odd sum_of(const float* from, std::int64_t apart, std::int64_t blocks) {
    even_and_odd v{load_vector(from), load_vector(from + lanes)};
    for (; blocks > 1; --blocks) {
      from += apart;
      v.even += load_vector(from);
      v.odd += load_vector(from + lanes);
    }
    return v;
  }
  static ISOTOPE_INLINE even_and_odd of(const bfloat16* x) {
    words w;
    __builtin_memcpy(&w, x, sizeof w);
    return of(w);
  }
  ISOTOPE_INLINE bool has_subnormals() const {
    std::uint16_t some = 0, others = 0;
    isa::find_subnormal_lanes(some, even);
    isa::find_subnormal_lanes(others, odd);
    return (some | others) != 0;
  }
  /// The first vector, then the second one, rounded to bf16; subnormal numbers become zero.
  ISOTOPE_INLINE words packed() const {
    words w{};
    isa::round_two_to_bf16(w, even, odd);
    return w;
  }
  words packed_exactly() const {
    const rounded_vector both[] = {rounded(even), rounded(odd)};
    return std::bit_cast<words>(both);
  }
};
/// Where element j of a row is after it was apart and packed, once or twice.
constexpr int place_in_packed(int j, int times) { return times == 0 ? j : place_in_packed(j / 2 + j % 2 * int(lanes), times - 1); }
template <int Times, int... J> ISOTOPE_INLINE words in_order(const words& w, std::integer_sequence<int, J...>) {
  const auto from = std::bit_cast<halves>(w);
  return std::bit_cast<words>(halves(__builtin_shufflevector(from, from, place_in_packed(J, Times)...)));
}
template <int Times> ISOTOPE_INLINE words in_order(const words& w) {
  return in_order<Times>(w, std::make_integer_sequence<int, 2 * int(lanes)>{});
}
/// Rounds to bf16. NaN has zeros in its lower half, as bf16 has.
ISOTOPE_INLINE vector as_bf16(const vector& v) {
  const auto u = std::bit_cast<lanewise::words>(v);
  return std::bit_cast<vector>((u + ((u >> 16 & 1u) + 0x7fffu)) & 0xffff'0000u);
}

/// What a product does with rows of two vectors of sums: where results go, and what is added to them.
class rounded_body {
 public:
  using kind = body_kind;
  kind what = kind::other;
  const bfloat16 *bias = nullptr, *residual = nullptr;  // of a column; of an element of the result
  bfloat16* result = nullptr;
  std::int64_t N = 0;

  rounded_body() = default;
  /// A template, since builds without native kernels of bf16 contain none of these.
  template <class Bf16 = precision::bf16>
  rounded_body(const launch& l, const portable::matmul_shape& s, const portable::gemm_epilogue& epilogue) : N(s.N) {
    if (l.out.size() != 1 || l.accumulate != 0 || !(epilogue.rounded() || epilogue.finishes_rounded())) return;
    const known_body<Bf16> body(l, N);
    if (body.kind == kind::gelu_tanh) return;
    what = body.kind, bias = body.bias, residual = body.residual;
    result = l.out[0].template as<bfloat16>();
  }
  bool known() const { return what != kind::other; }
  /// Calls f(std::integral_constant<kind, what>), where the body is known.
  template <class F> void with_kind(const F& f) const {
    switch (what) {
      case kind::none: return f(std::integral_constant<kind, kind::none>{});
      case kind::bias: return f(std::integral_constant<kind, kind::bias>{});
      case kind::gelu_erf: return f(std::integral_constant<kind, kind::gelu_erf>{});
      default: return f(std::integral_constant<kind, kind::residual>{});
    }
  }

  /// Widens the biases of 32 columns from n on, as `finish` reads them; returns whether none is subnormal.
  template <kind Kind> bool widen_bias(std::int64_t n, float* to) const {
    if constexpr (Kind == kind::none) {
      return true;
    } else {
      const even_and_odd x = even_and_odd::of(bias + n);
      store(to, x.even, x.odd);
      return !x.has_subnormals();
    }
  }
  /// Finishes a row with any numbers, of columns from n on, and stores it at element `at` of the result.
  template <kind Kind> ISOTOPE_NOINLINE void finish_exactly(const even_and_odd& v, std::int64_t at, std::int64_t n) const {
    bfloat16* const to = result + at;
    const bfloat16 *b = to, *r = to;  // not read
    if constexpr (Kind != kind::none) b = bias + n;
    if constexpr (Kind == kind::residual) r = residual + at;
    store(to, finished<Kind>(v.even, b, r), finished<Kind>(v.odd, b + lanes, r + lanes));
  }
  /// Finishes neighbouring rows, as (0..15, 16..31), and stores them from element `at` of the result on; no number is or becomes subnormal before the last step.
  ///
  /// @param wide  biases of these columns, as widen_bias makes them
  template <kind Kind, std::size_t Rows> ISOTOPE_INLINE void finish(even_and_odd (&v)[Rows], const float* wide, std::int64_t at) const {
    bfloat16* const to = result + at;
    const std::int64_t stride = N;
    constexpr int times = Kind == kind::gelu_erf ? 2 : 1;
    const auto each = [](const auto& step) ISOTOPE_INLINE_LAMBDA { lanewise::in_step<Rows>(step); };
    if constexpr (Kind == kind::none)
      return each([&](std::size_t r) ISOTOPE_INLINE_LAMBDA { store(to + std::int64_t(r) * stride, v[r].even, v[r].odd); });
    each([&](std::size_t r) ISOTOPE_INLINE_LAMBDA {
      v[r] = even_and_odd::of(v[r].packed());
      v[r] = {v[r].even + load_vector(wide), v[r].odd + load_vector(wide + lanes)};
    });
    if constexpr (Kind == kind::gelu_erf) {
      vector x[2 * Rows];
      each([&](std::size_t r) ISOTOPE_INLINE_LAMBDA {
        v[r] = even_and_odd::of(v[r].packed());
        x[2 * r] = v[r].even, x[2 * r + 1] = v[r].odd;
      });
      lanewise::gelu_erf_bf16(x);
      each([&](std::size_t r) ISOTOPE_INLINE_LAMBDA { v[r] = {x[2 * r], x[2 * r + 1]}; });
    }
    if constexpr (Kind == kind::residual)
      each([&](std::size_t r) ISOTOPE_INLINE_LAMBDA {
        const auto x = even_and_odd::of(residual + at + std::int64_t(r) * stride), y = even_and_odd::of(in_order<1>(v[r].packed()));
        v[r] = {x.even + y.even, x.odd + y.odd};
      });
    each([&](std::size_t r) ISOTOPE_INLINE_LAMBDA {
      const words w = in_order<times>(Kind != kind::bias && v[r].has_subnormals() ? v[r].packed_exactly() : v[r].packed());
      __builtin_memcpy(static_cast<void*>(to + std::int64_t(r) * stride), &w, sizeof w);
    });
  }

 private:
  /// One vector of a row with any numbers; the result is still to be rounded.
  template <kind Kind> static ISOTOPE_INLINE vector finished(vector y, const bfloat16* bias, const bfloat16* residual) {
    if constexpr (Kind == kind::none) return y;
    y = load(bias, whole_vector{}) + as_bf16(y);
    if constexpr (Kind == kind::gelu_erf) y = lanewise::gelu_erf_bf16(as_bf16(y));
    if constexpr (Kind == kind::residual) y = load(residual, whole_vector{}) + as_bf16(y);
    return y;
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
