// expect: static.assert
// note: satisf.*HasShapeRule
// never: satisf.*HasOpName
// An op is a tag with a name and a shape rule.
#include <isotope/core/op_info.hpp>

struct cube {
  static constexpr std::string_view name = "cube";
};
static_assert(isotope::IsOp<cube>);
