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
    const auto fill = c.constants<op::fill>();
    const std::int64_t n = fill.dims.count();
    y[0].resize(n);
    for (std::int64_t i = 0; i < n; ++i) y[0].set(i, fill.x);
  }
  static void cases(case_sink& s) {
    for (const double x : {0.0, 1.0, -0.5, infinity, nan, 0x1p-100})
      for (const shape& n : {shape{}, shape{0}, shape{1}, shape{257}, shape{3, 5}})
        for (const dtype t : {s.program(), s.accum()}) {
          s.add({}, op::fill::constants{.dims = n, .format = t, .x = x});
          if (s.program() == s.accum()) break;
        }
    s.add({}, op::fill::constants{.dims = {40000}, .format = s.program(), .x = -0.5});
  }
};

}  // namespace isotope::conform
