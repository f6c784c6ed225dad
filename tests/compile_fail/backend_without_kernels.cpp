// expect: static.assert
// note: satisf.*HasKernels
// never: satisf.*(HasBackendName|HasPreference|HasChunks|HasDevice)
// For a backend without `kernels`, the diagnostic names that part of the concept and no other.
#include <isotope/core/target.hpp>

struct toy {
  static constexpr std::string_view name = "toy";
  static constexpr int preference = 1;
  static constexpr std::int64_t chunk_bytes = 0;
  template <class T> struct device {};
};
static_assert(isotope::Backend<toy>);
