// expect: static.assert
// note: satisf.*HasBackendName
// never: satisf.*(HasPreference|HasChunks|HasKernels|HasDevice)
// For a backend without `name`, the diagnostic names that part of the concept and no other.
#include <isotope/core/target.hpp>

struct toy {
  static constexpr int preference = 1;
  static constexpr std::int64_t chunk_bytes = 0;
  using kernels = boost::mp11::mp_list<>;
  template <class T> struct device {};
};
static_assert(isotope::Backend<toy>);
