#pragma once
/// C++ types whose arithmetic generates SPIR-V instructions, with the operators and functions that kernels/vulkan/body/formulas.glsl uses.
///
/// A literal belongs to no module until it is combined with a value that does. Floating-point arithmetic is never contracted.
#include <concepts>

#include "expressions.hpp"

namespace isotope::vulkan::spirv {

/// A node of the graph `in`, or the bits of a literal if `in` is null.
struct lane_value {
  expressions* in = nullptr;
  std::uint32_t bits = 0;
};
struct word : lane_value {
  constexpr word() = default;
  constexpr word(expressions& e, node_index n) : lane_value{&e, n} {}
  template <std::integral X> constexpr word(X x) : lane_value{nullptr, std::uint32_t(x)} {}
  constexpr node_index of(expressions& e) const { return in != nullptr ? bits : e.literal(lane_kind::word, bits); }
};
struct number : lane_value {
  constexpr number() = default;
  constexpr number(expressions& e, node_index n) : lane_value{&e, n} {}
  template <std::same_as<float> X> constexpr number(X x) : lane_value{nullptr, std::bit_cast<std::uint32_t>(x)} {}
  constexpr explicit number(const word& w) : lane_value{w.in, w.in->apply(112, lane_kind::number, w.bits)} {}  // ConvertUToF
  constexpr node_index of(expressions& e) const { return in != nullptr ? bits : e.literal(lane_kind::number, bits); }
};
struct flag : lane_value {
  constexpr flag(expressions& e, node_index n) : lane_value{&e, n} {}
};

constexpr expressions& owner_of(const auto&... v) {
  expressions* e = nullptr;
  ((e = e == nullptr ? v.in : e), ...);
  return *e;
}
constexpr number operate(std::uint32_t op, const number& a, const number& b) {
  expressions& e = owner_of(a, b);
  return {e, e.arithmetic(op, a.of(e), b.of(e))};
}
constexpr word operate(std::uint32_t op, const word& a, const word& b) {
  expressions& e = owner_of(a, b);
  return {e, e.apply(op, lane_kind::word, a.of(e), b.of(e))};
}
template <class T> constexpr flag compare(std::uint32_t op, const T& a, const T& b) {
  expressions& e = owner_of(a, b);
  return {e, e.apply(op, lane_kind::flag, a.of(e), b.of(e))};
}

constexpr number operator+(const number& a, const number& b) {
  if (a.in == nullptr && b.in == nullptr) return std::bit_cast<float>(a.bits) + std::bit_cast<float>(b.bits);
  return operate(129, a, b);
}
constexpr number operator-(const number& a, const number& b) { return operate(131, a, b); }
constexpr number operator*(const number& a, const number& b) { return operate(133, a, b); }
constexpr number operator/(const number& a, const number& b) { return operate(136, a, b); }
constexpr number operator-(const number& a) { return {*a.in, a.in->arithmetic(127, a.bits)}; }
constexpr word operator+(const word& a, const word& b) { return operate(128, a, b); }
constexpr word operator-(const word& a, const word& b) { return operate(130, a, b); }
constexpr word operator*(const word& a, const word& b) { return operate(132, a, b); }
constexpr word operator&(const word& a, const word& b) { return operate(199, a, b); }
constexpr word operator|(const word& a, const word& b) { return operate(197, a, b); }
constexpr word operator^(const word& a, const word& b) { return operate(198, a, b); }
constexpr word operator<<(const word& a, const word& b) { return operate(196, a, b); }
constexpr word operator>>(const word& a, const word& b) { return operate(194, a, b); }
constexpr flag operator<(const number& a, const number& b) { return compare(184, a, b); }
constexpr flag operator>(const number& a, const number& b) { return compare(186, a, b); }
constexpr flag operator<(const word& a, const word& b) { return compare(176, a, b); }
constexpr flag operator>(const word& a, const word& b) { return compare(172, a, b); }
constexpr flag operator==(const word& a, const word& b) { return compare(170, a, b); }

constexpr number choose(const flag& c, const number& yes, const number& no) {
  return {*c.in, c.in->apply(169, lane_kind::number, c.bits, yes.of(*c.in), no.of(*c.in))};
}
constexpr word choose(const flag& c, const word& yes, const word& no) {
  return {*c.in, c.in->apply(169, lane_kind::word, c.bits, yes.of(*c.in), no.of(*c.in))};
}
constexpr number fma(const number& a, const number& b, const number& c) {
  expressions& e = owner_of(a, b, c);
  return {e, e.extended(50, a.of(e), b.of(e), c.of(e))};
}
constexpr number exp2(const number& x) { return {*x.in, x.in->extended(29, x.bits)}; }
constexpr number sqrt(const number& x) { return {*x.in, x.in->extended(31, x.bits)}; }
// Functions with the GLSL names that formulas.glsl uses.
constexpr word floatBitsToUint(const number& x) {
  if (x.in == nullptr) return x.bits;
  return {*x.in, x.in->apply(124, lane_kind::word, x.bits)};
}
constexpr number uintBitsToFloat(const word& x) {
  if (x.in == nullptr) return std::bit_cast<float>(x.bits);
  return {*x.in, x.in->apply(124, lane_kind::number, x.bits)};
}

}  // namespace isotope::vulkan::spirv
