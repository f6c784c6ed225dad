#pragma once
#include "../../op/fill.hpp"
#include "../exact_spec.hpp"

namespace isotope::conform {

template <> struct op_spec<op::fill> : exact_spec {
  static constexpr std::array<operand_role, 0> inputs{};
  static constexpr std::array fields{attribute_field{.name = "shape", .kind = attribute_kind::extents, .slot = 0, .required = true},
                                     attribute_field{"value", attribute_kind::number, 0, 0},
                                     attribute_field{"format", attribute_kind::format, 7, double(int(dtype::f32))}};
  static constexpr numeric_policy policy{.flushes_on_gpu = false, .nan = "its value"};
  static void reference(const call& c, std::span<answer> y) {
    std::int64_t n = 1;
    for (std::int64_t k = 0; k < c.attr.i[6]; ++k) n *= c.attr.i[std::size_t(k)];
    y[0].resize(n);
    for (std::int64_t i = 0; i < n; ++i) y[0].set(i, c.attr.f[0]);
  }
  static void cases(case_sink& s) {
    for (const double x : {0.0, 1.0, -0.5, infinity, nan, 0x1p-100})
      for (const shape& n : {shape{}, shape{0}, shape{1}, shape{257}, shape{3, 5}}) {
        attributes a;
        for (int k = 0; k < n.rank; ++k) a.i[std::size_t(k)] = n[k];
        a.i[6] = n.rank;
        a.f[0] = x;
        for (const dtype t : {s.program(), s.accum()}) {
          a.i[7] = std::int64_t(t);
          s.add({}, a);
          if (s.program() == s.accum()) break;
        }
      }
    attributes large;
    large.i = {40000, 0, 0, 0, 0, 0, 1, std::int64_t(s.program())};
    large.f[0] = -0.5;
    s.add({}, large);
  }
};

}  // namespace isotope::conform
