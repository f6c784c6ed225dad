// expect: static.assert
// note: satisf.*HasBackendName
// never: satisf.*(HasPreference|HasChunks|HasOptions|HasKernels|HasDevice)
// A backend without `name`: that part of the concept is pointed at, and no other.
#include <isotope/core/target.hpp>

struct toy {
  struct options {
    std::string_view name;
    isotope::diagnostics diagnose;
  };
  static constexpr int preference = 1;
  static constexpr std::int64_t chunk_bytes = 0;
  using kernels = boost::mp11::mp_list<>;
  template <class T> struct device {};
};
static_assert(isotope::Backend<toy>);
