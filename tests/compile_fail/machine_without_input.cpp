// expect: static.assert
// note: satisf.*DeclaresInputs
// never: satisf.*(HasTarget|AppliesOps|DeclaresParams|DescribesValues)
// A machine without `input`: that part of the concept is pointed at, and no other.
#include <isotope/core/tape.hpp>

struct machine : private isotope::tape {
  using target = tape::target;
  using tape::apply;
  using tape::describe;
  using tape::param;
  using tape::program;
};
static_assert(isotope::Machine<machine>);
