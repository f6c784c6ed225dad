// expect: static.assert
// note: satisf.*HasPrecision
// never: satisf.*(HasBackend|HasKernelSet)
// For a target without `precision`, the diagnostic names that part of the concept and no other.
#include <isotope/core/target.hpp>

struct toy {
  static constexpr std::string_view name = "toy";
  using kernels = boost::mp11::mp_list<>;
};
struct incomplete {
  using backend = toy;
  using kernel_set = isotope::kernels::reference;
};
static_assert(isotope::Target<incomplete>);
