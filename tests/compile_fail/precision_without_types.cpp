// expect: static.assert
// note: satisf.*HasTypes
// never: satisf.*(HasStorage|HasAccum|HasPrecisionName)
// A precision without `type` and `accum_type`.
#include <isotope/core/precision.hpp>

struct incomplete {
  using storage = float;
  using accum = float;
  static constexpr std::string_view name = "tf32";
};
static_assert(isotope::Precision<incomplete>);
