// expect: op_spec<Op>: no reference; add
// A specification without a reference does not compile.
#include <isotope/conform/spec.hpp>
#include <isotope/op/all.hpp>

namespace toy {
struct rank_of : isotope::op::unary_elementwise {
  static constexpr std::string_view name = "rank_of";
};
}  // namespace toy

namespace isotope::conform {
template <> struct op_spec<toy::rank_of> : spec_basis {
  static constexpr std::array inputs{operand_role{"x"}};
  static constexpr std::array outputs{result_role{"y"}};
  static constexpr std::array boundary{0.0, 1.0, 2.0, 3.0};
  static void cases(case_sink&) {}
};
static_assert(spec_of<toy::rank_of>().version == 1);
}  // namespace isotope::conform
