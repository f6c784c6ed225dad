// expect: static.assert
// note: satisf.*DescribesValues
// never: satisf.*(HasTarget|AppliesOps|DeclaresParams|DeclaresInputs)
// For a machine without `describe`, the diagnostic names that part of the concept and no other.
#include <isotope/core/tape.hpp>

struct machine : private isotope::tape {
  using target = tape::target;
  using tape::apply;
  using tape::input;
  using tape::param;
  using tape::program;
};
static_assert(isotope::Machine<machine>);
