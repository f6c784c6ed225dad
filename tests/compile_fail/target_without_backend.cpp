// expect: static.assert
// note: satisf.*HasBackend
// never: satisf.*(HasPrecision|HasKernelSet)
// For a target without `backend`, the diagnostic names that part of the concept and no other.
#include <isotope/core/target.hpp>

struct toy {
  static constexpr std::string_view name = "toy";
  using kernels = boost::mp11::mp_list<>;
};
struct incomplete {
  using precision = isotope::precision::f32;
  using kernel_set = isotope::kernels::reference;
};
static_assert(isotope::Target<incomplete>);
