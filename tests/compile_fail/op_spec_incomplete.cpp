// expect: op_spec<Op>: the op has a gradient and the specification none; add .static void gradient\(const call&, dy, dx\).
// note: op_spec<Op>: fewer than 4 boundary values
// never: op_spec<Op>: no reference
// A specification that lacks something conformance needs does not compile.
#include <isotope/conform/spec.hpp>
#include <isotope/op/exp.hpp>

template <> struct isotope::conform::op_spec<isotope::op::exp> : isotope::conform::spec_basis {
  static constexpr std::array inputs{operand_role{"x"}};
  static constexpr std::array outputs{result_role{"y"}};
  static constexpr std::array boundary{0.0, 1.0, infinity};
  static void reference(const call&, std::span<answer>) {}
  static void cases(case_sink&) {}
};
constexpr auto s = isotope::conform::spec_of<isotope::op::exp>();
