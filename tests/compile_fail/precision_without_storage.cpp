// expect: static.assert
// note: satisf.*HasStorage
// never: satisf.*(HasAccum|HasPrecisionName)
// A precision without `storage`.
#include <isotope/core/precision.hpp>

struct incomplete {
  using accum = float;
  static constexpr std::string_view name = "tf32";
  static constexpr isotope::dtype type = isotope::dtype::f32, accum_type = isotope::dtype::f32;
};
static_assert(isotope::Precision<incomplete>);
