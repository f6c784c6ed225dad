// expect: static.assert
// note: satisf.*HasStorage
// never: satisf.*(HasAccum|HasPrecisionName)
// For a precision without `storage`, the diagnostic names that part of the concept and no other.
#include <isotope/core/precision.hpp>

struct incomplete {
  using accum = float;
  static constexpr std::string_view name = "tf32";
  static constexpr isotope::dtype type = isotope::dtype::f32, accum_type = isotope::dtype::f32;
};
static_assert(isotope::Precision<incomplete>);
