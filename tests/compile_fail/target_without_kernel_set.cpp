// expect: static.assert
// note: satisf.*HasKernelSet
// never: satisf.*(HasBackend|HasPrecision)
// For a target without `kernel_set`, the diagnostic names that part of the concept and no other.
#include <isotope/core/target.hpp>

struct toy {
  static constexpr std::string_view name = "toy";
  using kernels = boost::mp11::mp_list<>;
};
struct incomplete {
  using backend = toy;
  using precision = isotope::precision::f32;
};
static_assert(isotope::Target<incomplete>);
