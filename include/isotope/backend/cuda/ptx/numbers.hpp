#pragma once
/// C++ types whose arithmetic generates PTX instructions, with the operators and functions that kernels/vulkan/body/formulas.glsl uses.
/// They have the arithmetic of the types in kernels/cuda/device/formulas.cuh, bit for bit.
///
/// A literal belongs to no graph until it is combined with a value that does. Nothing is contracted.
#include <bit>
#include <concepts>

#include "../../../core/precision.hpp"
#include "graph.hpp"

namespace isotope::cuda::ptx {

/// A node of the graph `in`, or the bits of a literal if `in` is null.
struct lane_value {
  graph* in = nullptr;
  std::uint32_t bits = 0;
  constexpr node_index of(graph& g) const { return in != nullptr ? bits : g.literal(bits); }
};
/// The graph of the first operand that has one.
constexpr graph& owner_of(const auto&... v) {
  graph* g = nullptr;
  ((g = g == nullptr ? v.in : g), ...);
  if (g == nullptr) __builtin_unreachable();  // operators of literals alone are evaluated without a graph
  return *g;
}
struct word : lane_value {
  constexpr word() = default;
  constexpr word(graph& g, node_index n) : lane_value{&g, n} {}
  template <std::integral X> constexpr word(X x) : lane_value{nullptr, std::uint32_t(x)} {}
};
struct number : lane_value {
  constexpr number() = default;
  constexpr number(graph& g, node_index n) : lane_value{&g, n} {}
  template <std::same_as<float> X> constexpr number(X x) : lane_value{nullptr, std::bit_cast<std::uint32_t>(x)} {}
  constexpr explicit number(const word& w) : lane_value{&owner_of(w), owner_of(w).apply(operation::converted, w.bits)} {}
};
struct flag : lane_value {
  constexpr flag(graph& g, node_index n) : lane_value{&g, n} {}
};

template <class Result, class... T> constexpr Result operate(operation o, const T&... v) {
  graph& g = owner_of(v...);
  return {g, g.apply(o, v.of(g)...)};
}

constexpr number operator+(const number& a, const number& b) {
  if (a.in == nullptr && b.in == nullptr) return std::bit_cast<float>(a.bits) + std::bit_cast<float>(b.bits);
  return operate<number>(operation::add, a, b);
}
constexpr number operator-(const number& a, const number& b) { return operate<number>(operation::subtract, a, b); }
constexpr number operator*(const number& a, const number& b) { return operate<number>(operation::multiply, a, b); }
/// Within 2 ULP where 1 / b and the result are normal numbers; formulas::divide divides any numbers.
constexpr number operator/(const number& a, const number& b) {
  const number inverse = operate<number>(operation::inverse, b);
  return a.in == nullptr && a.bits == 0x3f800000u ? inverse : a * inverse;
}
constexpr number operator-(const number& a) { return operate<number>(operation::negate, a); }
constexpr word operator+(const word& a, const word& b) { return operate<word>(operation::add_words, a, b); }
constexpr word operator-(const word& a, const word& b) { return operate<word>(operation::subtract_words, a, b); }
constexpr word operator*(const word& a, const word& b) { return operate<word>(operation::multiply_words, a, b); }
constexpr word operator&(const word& a, const word& b) { return operate<word>(operation::both, a, b); }
constexpr word operator|(const word& a, const word& b) { return operate<word>(operation::either, a, b); }
constexpr word operator^(const word& a, const word& b) { return operate<word>(operation::differing, a, b); }
constexpr word operator<<(const word& a, const word& b) { return operate<word>(operation::shift_left, a, b); }
constexpr word operator>>(const word& a, const word& b) { return operate<word>(operation::shift_right, a, b); }
constexpr flag operator<(const number& a, const number& b) { return operate<flag>(operation::less, a, b); }
constexpr flag operator>(const number& a, const number& b) { return operate<flag>(operation::greater, a, b); }
constexpr flag operator<(const word& a, const word& b) { return operate<flag>(operation::words_less, a, b); }
constexpr flag operator>(const word& a, const word& b) { return operate<flag>(operation::words_greater, a, b); }
constexpr flag operator==(const word& a, const word& b) { return operate<flag>(operation::words_equal, a, b); }

constexpr number choose(const flag& c, const number& yes, const number& no) {
  return {*c.in, c.in->apply(operation::choose, yes.of(*c.in), no.of(*c.in), c.bits)};
}
constexpr word choose(const flag& c, const word& yes, const word& no) {
  return {*c.in, c.in->apply(operation::choose, yes.of(*c.in), no.of(*c.in), c.bits)};
}
constexpr number fma(const number& a, const number& b, const number& c) { return operate<number>(operation::fma, a, b, c); }
constexpr number exp2(const number& x) { return operate<number>(operation::exp2, x); }
constexpr number sqrt(const number& x) { return operate<number>(operation::square_root, x); }
// Functions with the GLSL names that formulas.glsl uses. Registers have no type, so they need no instruction.
constexpr word floatBitsToUint(const number& x) {
  if (x.in == nullptr) return x.bits;
  return {*x.in, x.bits};
}
constexpr number uintBitsToFloat(const word& x) {
  if (x.in == nullptr) return std::bit_cast<float>(x.bits);
  return {*x.in, x.bits};
}

/// x rounded to format t, as in device/access.cuh.
constexpr number rounded(const number& x, dtype t) {
  switch (t) {
    case dtype::bf16: return operate<number>(operation::through_bf16, x);
    case dtype::f16: return operate<number>(operation::through_f16, x);
    case dtype::boolean: return choose((floatBitsToUint(x) & 0x7fffffffu) == 0u, number(0.0f), number(1.0f));
    default: return x;
  }
}

}  // namespace isotope::cuda::ptx
