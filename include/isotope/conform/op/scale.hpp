#pragma once
#include "../../op/scale.hpp"
#include "../unary_spec.hpp"

namespace isotope::conform {
/// k is rounded to the accumulation format before it is used.
struct constant_spec : spec_basis {
  static constexpr std::array fields{attribute_field{"k", attribute_kind::number, 0, 1}};
  static constexpr std::array inputs{operand_role{"x"}};
  static constexpr std::array outputs{result_role{"y", holds::floating, comparison::scaled}};
  static constexpr track on = track::strict;
};
template <> struct op_spec<op::scale> : constant_spec {
  static constexpr std::array boundary{0.0, -0.0, 1.0, 0x1p-126, infinity};
  static void reference(const call& c, std::span<answer> y) {
    const double k = rounded(c.on.accum(), c.attr.f[0]);
    y[0].resize(c.in[0].dims.count());
    for (std::int64_t i = 0; i < c.in[0].dims.count(); ++i) y[0].set(i, k * c.in[0][i]);
  }
  static void gradient(const call& c, std::span<const array> dy, std::span<answer> dx) {
    const double k = rounded(c.on.accum(), c.attr.f[0]);
    dx[0].resize(dy[0].dims.count());
    for (std::int64_t i = 0; i < dy[0].dims.count(); ++i) dx[0].set(i, k * dy[0][i]);
  }
  static void cases(case_sink& s) {
    for (const double k : {1.0, -0.5, 0.1, 1e30, 0.0}) {
      attributes a;
      a.f[0] = k;
      // Compilers of shaders may take 0 x for 0, whatever x: SPIR-V promises infinity and NaN to modules alone that ask for them.
      if (k != 0) s.add({s.x({24}, 0, 0, &generator_of<generators::specials>)}, a);
      s.add({s.x({511}, -30, 30, &generator_of<generators::exponents>)}, a);
      for (const shape& n : flat_shapes) s.add({s.x(n)}, a, true);
      for (int r = 0; r < s.repeats() / 4; ++r) s.add({s.x({s.size(r, 0, 1, 400)})}, a, true);
    }
  }
};
template <> struct op_spec<op::shift> : constant_spec {
  static constexpr std::array boundary{0.0, -0.0, -1.0, 0x1p24, infinity};
  static constexpr std::array fields{attribute_field{"k", attribute_kind::number, 0, 0}};
  static void reference(const call& c, std::span<answer> y) {
    const double k = rounded(c.on.accum(), c.attr.f[0]);
    y[0].resize(c.in[0].dims.count());
    for (std::int64_t i = 0; i < c.in[0].dims.count(); ++i) y[0].set(i, k + c.in[0][i]);
  }
  static void gradient(const call&, std::span<const array> dy, std::span<answer> dx) {
    dx[0].resize(dy[0].dims.count());
    for (std::int64_t i = 0; i < dy[0].dims.count(); ++i) dx[0].set(i, dy[0][i]);
  }
  static void cases(case_sink& s) {
    for (const double k : {1.0, -0.3, 1e8}) {
      attributes a;
      a.f[0] = k;
      s.add({s.x({24}, 0, 0, &generator_of<generators::specials>)}, a);
      s.add({s.x({511}, -30, 30, &generator_of<generators::exponents>)}, a);
      for (const shape& n : flat_shapes) s.add({s.x(n)}, a, true);
      for (int r = 0; r < s.repeats() / 4; ++r) s.add({s.x({s.size(r, 0, 1, 400)})}, a, true);
    }
  }
};
}  // namespace isotope::conform
