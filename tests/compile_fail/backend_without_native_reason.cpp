// expect: static.assert
// note: satisf.*HasReports
// never: satisf.*(HasBackendName|HasPreference|HasLimits|HasOptions|HasDevice|HasKernels)
// For a backend without `native_reason`, the diagnostic names that part of the concept and no other.
#include <isotope/core/target.hpp>

struct toy {
  struct options {
    std::string_view name;
    isotope::diagnostics diagnose;
  };
  static constexpr std::string_view name = "toy";
  static constexpr int preference = 1;
  static std::vector<isotope::code_variant> variants() { return {}; }
  static constexpr std::int64_t chunk_bytes = 0, tensor_bytes = 0, row_multiple = 1;
  using kernels = boost::mp11::mp_list<>;
  template <class T> struct device {};
};
static_assert(isotope::Backend<toy>);
