// expect: static.assert
// note: satisf.*DescribesValues
// never: satisf.*(HasTarget|AppliesOps|DeclaresParams|DeclaresInputs)
// A machine without `describe`: that part of the concept is pointed at, and no other.
#include <isotope/core/tape.hpp>

struct machine : private isotope::tape {
  using target = tape::target;
  using tape::apply;
  using tape::input;
  using tape::param;
  using tape::program;
};
static_assert(isotope::Machine<machine>);
