#pragma once
/// Values of a module as C++ sees them: arithmetic on them appends instructions. What kernels/vulkan/formulas.glsl needs of C++.
///
/// A literal has no module until it meets a value that has one. Floating-point arithmetic is never contracted.
#include <concepts>

#include "builder.hpp"

namespace isotope::vulkan::spirv {

/// A value's name in its module, or the bits of a literal where `in` is null.
struct lane_value {
  builder* in = nullptr;
  std::uint32_t bits = 0;
};
struct word : lane_value {
  constexpr word() = default;
  constexpr word(builder& b, id i) : lane_value{&b, i} {}
  template <std::integral X> constexpr word(X x) : lane_value{nullptr, std::uint32_t(x)} {}
  constexpr id of(builder& b) const { return in != nullptr ? bits : b.lane_constant(b.word(), bits); }
};
struct number : lane_value {
  constexpr number() = default;
  constexpr number(builder& b, id i) : lane_value{&b, i} {}
  template <std::same_as<float> X> constexpr number(X x) : lane_value{nullptr, std::bit_cast<std::uint32_t>(x)} {}
  constexpr explicit number(const word& w) : lane_value{w.in, w.in->code(112, w.in->lane_number(), {w.bits})} {}  // ConvertUToF
  constexpr id of(builder& b) const { return in != nullptr ? bits : b.lane_constant(b.number(), bits); }
};
struct flag : lane_value {
  constexpr flag(builder& b, id i) : lane_value{&b, i} {}
};

constexpr builder& module_of(const auto&... v) {
  builder* b = nullptr;
  ((b = b == nullptr ? v.in : b), ...);
  return *b;
}
constexpr number operate(std::uint32_t op, const number& a, const number& b) {
  builder& m = module_of(a, b);
  const id x = a.of(m), y = b.of(m);
  return {m, m.arithmetic(op, m.lane_number(), {x, y})};
}
constexpr word operate(std::uint32_t op, const word& a, const word& b) {
  builder& m = module_of(a, b);
  const id x = a.of(m), y = b.of(m);
  return {m, m.code(op, m.lane_word(), {x, y})};
}
template <class T> constexpr flag compare(std::uint32_t op, const T& a, const T& b) {
  builder& m = module_of(a, b);
  const id x = a.of(m), y = b.of(m);
  return {m, m.code(op, m.lane_truth(), {x, y})};
}

constexpr number operator+(const number& a, const number& b) {
  if (a.in == nullptr && b.in == nullptr) return std::bit_cast<float>(a.bits) + std::bit_cast<float>(b.bits);
  return operate(129, a, b);
}
constexpr number operator-(const number& a, const number& b) { return operate(131, a, b); }
constexpr number operator*(const number& a, const number& b) { return operate(133, a, b); }
constexpr number operator/(const number& a, const number& b) { return operate(136, a, b); }
constexpr number operator-(const number& a) { return {*a.in, a.in->arithmetic(127, a.in->lane_number(), {a.bits})}; }
constexpr word operator+(const word& a, const word& b) { return operate(128, a, b); }
constexpr word operator-(const word& a, const word& b) { return operate(130, a, b); }
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
  const id x = yes.of(*c.in), y = no.of(*c.in);
  return {*c.in, c.in->code(169, c.in->lane_number(), {c.bits, x, y})};
}
constexpr word choose(const flag& c, const word& yes, const word& no) {
  const id x = yes.of(*c.in), y = no.of(*c.in);
  return {*c.in, c.in->code(169, c.in->lane_word(), {c.bits, x, y})};
}
constexpr number fma(const number& a, const number& b, const number& c) {
  builder& m = module_of(a, b, c);
  const id x = a.of(m), y = b.of(m), z = c.of(m);
  return {m, m.extended(50, m.lane_number(), {x, y, z})};
}
constexpr number sqrt(const number& x) { return {*x.in, x.in->extended(31, x.in->lane_number(), {x.bits})}; }
// The names of GLSL, by which formulas.glsl calls them.
constexpr word floatBitsToUint(const number& x) {
  if (x.in == nullptr) return x.bits;
  return {*x.in, x.in->code(124, x.in->lane_word(), {x.bits})};
}
constexpr number uintBitsToFloat(const word& x) {
  if (x.in == nullptr) return std::bit_cast<float>(x.bits);
  return {*x.in, x.in->code(124, x.in->lane_number(), {x.bits})};
}

}  // namespace isotope::vulkan::spirv
