// expect: op_spec<Op>: integers and truth values are compared exactly
// A specification cannot declare a tolerance for integer results.
#include <isotope/conform/spec.hpp>
#include <isotope/op/extremum.hpp>

template <> struct isotope::conform::op_spec<isotope::op::argmax> : isotope::conform::spec_basis {
  static constexpr std::array inputs{operand_role{"x"}};
  static constexpr std::array outputs{result_role{"index", holds::integers, comparison::scaled}};
  static void reference(const call&, std::span<answer>) {}
  static void cases(case_sink&) {}
};
constexpr auto s = isotope::conform::spec_of<isotope::op::argmax>();
