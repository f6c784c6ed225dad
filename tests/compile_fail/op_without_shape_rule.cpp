// expect: static.assert
// note: satisf.*HasShapeRule
// never: satisf.*HasOpName
// For an op without a shape rule, the diagnostic names that part of the concept and no other.
#include <isotope/core/op_info.hpp>

struct cube {
  static constexpr std::string_view name = "cube";
};
static_assert(isotope::IsOp<cube>);
