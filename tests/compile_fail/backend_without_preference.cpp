// expect: static.assert
// note: satisf.*HasPreference
// never: satisf.*(HasBackendName|HasChunks|HasKernels|HasDevice)
// For a backend without `preference`, the diagnostic names that part of the concept and no other.
#include <isotope/core/target.hpp>

struct toy {
  static constexpr std::string_view name = "toy";
  static constexpr std::int64_t chunk_bytes = 0;
  using kernels = boost::mp11::mp_list<>;
  template <class T> struct device {};
};
static_assert(isotope::Backend<toy>);
