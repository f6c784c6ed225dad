// expect: static.assert
// note: satisf.*HasTypes
// never: satisf.*(HasStorage|HasAccum|HasPrecisionName)
// For a precision without `type` and `accum_type`, the diagnostic names that part of the concept and no other.
#include <isotope/core/precision.hpp>

struct incomplete {
  using storage = float;
  using accum = float;
  static constexpr std::string_view name = "tf32";
};
static_assert(isotope::Precision<incomplete>);
