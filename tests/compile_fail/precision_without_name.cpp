// expect: static.assert
// note: satisf.*HasPrecisionName
// never: satisf.*(HasStorage|HasAccum)
// For a precision without `name`, the diagnostic names that part of the concept and no other.
#include <isotope/core/precision.hpp>

struct incomplete {
  using storage = float;
  using accum = float;
  static constexpr isotope::dtype type = isotope::dtype::f32, accum_type = isotope::dtype::f32;
};
static_assert(isotope::Precision<incomplete>);
