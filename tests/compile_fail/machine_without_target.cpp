// expect: static.assert
// note: satisf.*HasTarget
// never: satisf.*(AppliesOps|DeclaresParams|DeclaresInputs|DescribesValues)
// A machine without `target`: that part of the concept is pointed at, and no other.
#include <isotope/core/tape.hpp>

struct machine : private isotope::tape {
  using tape::apply;
  using tape::describe;
  using tape::input;
  using tape::param;
  using tape::program;
};
static_assert(isotope::Machine<machine>);
