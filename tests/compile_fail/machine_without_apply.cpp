// expect: static.assert
// note: satisf.*AppliesOps
// never: satisf.*(HasTarget|DeclaresParams|DeclaresInputs|DescribesValues)
// For a machine without `apply`, the diagnostic names that part of the concept and no other.
#include <isotope/core/tape.hpp>

struct machine : private isotope::tape {
  using target = tape::target;
  using tape::describe;
  using tape::input;
  using tape::param;
  using tape::program;
};
static_assert(isotope::Machine<machine>);
