// expect: static.assert
// note: satisf.*HasChunks
// never: satisf.*(HasBackendName|HasPreference|HasKernels|HasDevice)
// For a backend without `chunk_bytes`, the diagnostic names that part of the concept and no other.
#include <isotope/core/target.hpp>

struct toy {
  static constexpr std::string_view name = "toy";
  static constexpr int preference = 1;
  using kernels = boost::mp11::mp_list<>;
  template <class T> struct device {};
};
static_assert(isotope::Backend<toy>);
