// expect: static.assert
// note: satisf.*HasPrecisionName
// never: satisf.*(HasStorage|HasAccum)
// A precision without `name`.
#include <isotope/core/precision.hpp>

struct incomplete {
  using storage = float;
  using accum = float;
  static constexpr isotope::dtype type = isotope::dtype::f32, accum_type = isotope::dtype::f32;
};
static_assert(isotope::Precision<incomplete>);
