#pragma once
/// The fused bodies that a product on a matrix unit finishes in registers, and how.
///
/// Bound by the vector instructions, of which two ports take 512 bits. Two vectors at a time are rounded to bf16 by one instruction, whose result a shift and a
/// mask widen again, those in even places and those in odd ones, so that only the last result is put in order: a dozen instructions for 32 sums and a
/// bias, where rounding by integers took twice as many. GELU takes those of two rows in step.
#include <isotope/kernels/cpu/native/gemm/known_body.hpp>
#include <isotope/kernels/cpu/native/gemm/pairs.hpp>
#include <isotope/kernels/cpu/native/gemm/vector_panels.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// 32 numbers of a row: those in even and those in odd places.
struct even_and_odd {
  vector even, odd;

  static ISOTOPE_INLINE even_and_odd of(const words& w) {
    return {std::bit_cast<vector>(w << 16), std::bit_cast<vector>(w & 0xffff'0000u)};
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

/// The fused bodies that are finished in registers, each step rounded to bf16.
struct unit_body {
  using kind = body_kind;
  kind what = kind::other;
  const bfloat16 *bias = nullptr, *residual = nullptr;

  /// A template, since builds without native kernels of bf16 contain none of these.
  template <class Bf16 = precision::bf16> unit_body(const launch& l, std::int64_t N) {
    const known_body<Bf16> body(l, N);
    if (body.kind == kind::gelu_tanh) return;
    what = body.kind, bias = body.bias, residual = body.residual;
  }

  /// One vector of a row with any numbers; the result is still to be rounded.
  template <kind Kind> static ISOTOPE_INLINE vector finished(vector y, const bfloat16* bias, const bfloat16* residual) {
    if constexpr (Kind == kind::none) return y;
    y = load(bias, whole_vector{}) + as_bf16(y);
    if constexpr (Kind == kind::gelu_erf) y = lanewise::gelu_erf_bf16(as_bf16(y));
    if constexpr (Kind == kind::residual) y = load(residual, whole_vector{}) + as_bf16(y);
    return y;
  }
  /// Finishes and stores rows of 32 sums each, as (0..15, 16..31), none of which is or becomes subnormal before the last step.
  ///
  /// @param bias      of these columns in f32, even and odd ones
  /// @param residual  of the first row, `stride` elements from the next one, as the result
  template <kind Kind, std::size_t Rows>
  static ISOTOPE_INLINE void finish(even_and_odd (&v)[Rows], const float* bias, const bfloat16* residual, bfloat16* to,
                                    std::int64_t stride) {
    constexpr int times = Kind == kind::gelu_erf ? 2 : 1;
    const auto each = [](const auto& step) ISOTOPE_INLINE_LAMBDA { lanewise::in_step<Rows>(step); };
    if constexpr (Kind == kind::none)
      return each([&](std::size_t r) ISOTOPE_INLINE_LAMBDA { store(to + std::int64_t(r) * stride, v[r].even, v[r].odd); });
    each([&](std::size_t r) ISOTOPE_INLINE_LAMBDA {
      v[r] = even_and_odd::of(v[r].packed());
      v[r] = {v[r].even + load_vector(bias), v[r].odd + load_vector(bias + lanes)};
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
        const auto x = even_and_odd::of(residual + std::int64_t(r) * stride), y = even_and_odd::of(in_order<1>(v[r].packed()));
        v[r] = {x.even + y.even, x.odd + y.odd};
      });
    each([&](std::size_t r) ISOTOPE_INLINE_LAMBDA {
      const words w = in_order<times>(Kind != kind::bias && v[r].has_subnormals() ? v[r].packed_exactly() : v[r].packed());
      __builtin_memcpy(static_cast<void*>(to + std::int64_t(r) * stride), &w, sizeof w);
    });
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
