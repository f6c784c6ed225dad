#pragma once
/// Powers in steps of 2^(1 / lanes), looked up in a register, so that a cubic covers the rest. Softmax weights, gates, gelu and tanh use them.
///
/// 2^(k / lanes) is a word of the table plus k shifted to the exponent field; the words of the table are reduced by what the index bits of k thereby
/// add to the mantissa. Powers are multiples of a constant `One` that keeps them above 2^-126 where results are not, or below 2^128.
#include <array>
#include <isotope/kernels/cpu/native/math/lanes.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native::lanewise {

/// A value of One for users that may divide by it at no cost: 2^(j / 16) free_unit is within 0.26 2^-24 of a float for every j; for One = 1 it is
/// 0.79.
inline constexpr float free_unit = 0x1.d026fcp0f;

struct steps {
  static constexpr float shift = 0x1.8p23f / float(lanes);  // adding it leaves the nearest multiple of 1 / lanes in the low bits
  static constexpr int place_bits = std::countr_zero(std::uint32_t(lanes));
  using table = std::array<std::uint32_t, std::size_t(lanes)>;
  static constexpr double factor = place_bits == 4 ? 1.0442737824274138 : place_bits == 3 ? 1.0905077326652577 : 1.189207115002721;
  static constexpr table table_of(float one) {
    table t{};
    double power = double(one);
    for (std::size_t j = 0; j < t.size(); ++j, power *= factor)
      t[j] = std::bit_cast<std::uint32_t>(float(power)) - (std::uint32_t(j) << (23 - place_bits));
    return t;
  }
  /// Returns the relative error of each power of the table, as floats.
  static constexpr table lacking_of(float one) {
    table t{};
    double power = double(one);
    for (std::size_t j = 0; j < t.size(); ++j, power *= factor)
      t[j] = std::bit_cast<std::uint32_t>(float(power / double(float(power)) - 1));
    return t;
  }
};

/// Returns the elements of the table at the indices in the low bits.
ISOTOPE_INLINE words look_up(const steps::table& table, words places) {
  words y;
  if constexpr (config::has_lane_tables) {
    const auto t = std::bit_cast<words>(table);
    isa::look_up_lanes(y, t, places);
  } else {
    for (std::size_t i = 0; i < table.size(); ++i) y[i] = table[places[i] % table.size()];
  }
  return y;
}

/// Returns One 2^(k / lanes) for exponents from -126 to 127, where shifted = shift + k / lanes.
template <float One> ISOTOPE_INLINE vector power_of_steps(vector shifted) {
  constexpr steps::table table = steps::table_of(One);
  return from_bits(look_up(table, bits(shifted)) + (bits(shifted) << (23 - steps::place_bits)));
}

/// c[0] + c[1] r + c[2] r^2 = (e^(unit r) - 1) / r for |unit r| <= ln 2 / (2 lanes), the rest of a step. r times the error is below 2^-29 (16 lanes)
/// or 2^-25 (8): the factor of r^2 exceeds Taylor's by 0.8284 h^2 / 24, so that the missing r^4 / 24 errs as much inside as at the end h.
struct rest_terms {
  float c[3];
  explicit constexpr rest_terms(double unit) : c{} {
    const double h = 0.34657359027997264 / double(lanes);
    c[0] = float(unit);
    c[1] = float(unit * unit * (0.5 + 0.8284271247461903 / 24 * h * h));
    c[2] = float(unit * unit * unit / 6);
  }
};
/// power e^(unit r), rounded once more.
ISOTOPE_INLINE vector with_rest(vector power, vector r, const rest_terms& terms) { return madd(polynomial(r, terms.c), power * r, power); }

/// Returns One e^x for exponents from -126 to 127. Error: 1.5 ULP.
template <float One> ISOTOPE_INLINE vector multiple_of_exp(vector x) {
  constexpr rest_terms terms(1.0);
  const vector shifted = madd(x, all(1.44269504f), all(steps::shift)), k = shifted - steps::shift;
  const vector r = madd(k, all(2.12194440e-4f), madd(k, all(-0.693359375f), x));  // exact but for the last factor
  return with_rest(power_of_steps<One>(shifted), r, terms);
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native::lanewise
