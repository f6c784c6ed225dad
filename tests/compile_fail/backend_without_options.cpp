// expect: static.assert
// note: satisf.*HasOptions
// never: satisf.*(HasBackendName|HasPreference|HasLimits|HasReports|HasDevice|HasKernels)
// For a backend without `options`, the diagnostic names that part of the concept and no other.
#include <isotope/core/target.hpp>

struct toy {
  static constexpr std::string_view name = "toy";
  static constexpr int preference = 1;
  static constexpr std::string_view native_reason = "no native kernel";
  static std::vector<isotope::code_variant> variants() { return {}; }
  static constexpr std::int64_t chunk_bytes = 0, tensor_bytes = 0, row_multiple = 1;
  using kernels = boost::mp11::mp_list<>;
  template <class T> struct device {};
};
static_assert(isotope::Backend<toy>);
