// expect: static.assert
// note: satisf.*HasAccum
// never: satisf.*(HasStorage|HasPrecisionName)
// For a precision without `accum`, the diagnostic names that part of the concept and no other.
#include <isotope/core/precision.hpp>

struct incomplete {
  using storage = float;
  static constexpr std::string_view name = "tf32";
  static constexpr isotope::dtype type = isotope::dtype::f32, accum_type = isotope::dtype::f32;
};
static_assert(isotope::Precision<incomplete>);
