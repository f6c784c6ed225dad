// expect: static.assert
// note: satisf.*HasDevice
// never: satisf.*(HasBackendName|HasPreference|HasChunks|HasKernels)
// For a backend without `device`, the diagnostic names that part of the concept and no other.
#include <isotope/core/target.hpp>

struct toy {
  static constexpr std::string_view name = "toy";
  static constexpr int preference = 1;
  static constexpr std::int64_t chunk_bytes = 0;
  using kernels = boost::mp11::mp_list<>;
};
static_assert(isotope::Backend<toy>);
