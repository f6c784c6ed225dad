// expect: static.assert
// note: satisf.*HasChunks
// never: satisf.*(HasBackendName|HasPreference|HasOptions|HasKernels|HasDevice)
// A backend without `chunk_bytes`: that part of the concept is pointed at, and no other.
#include <isotope/core/target.hpp>

struct toy {
  struct options {
    std::string_view name;
    isotope::diagnostics diagnose;
  };
  static constexpr std::string_view name = "toy";
  static constexpr int preference = 1;
  using kernels = boost::mp11::mp_list<>;
  template <class T> struct device {};
};
static_assert(isotope::Backend<toy>);
