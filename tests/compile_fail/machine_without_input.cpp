// expect: static.assert
// note: satisf.*DeclaresInputs
// never: satisf.*(HasTarget|AppliesOps|DeclaresParams|DescribesValues)
// For a machine without `input`, the diagnostic names that part of the concept and no other.
#include <isotope/core/tape.hpp>

struct machine : private isotope::tape {
  using target = tape::target;
  using tape::apply;
  using tape::describe;
  using tape::param;
  using tape::program;
};
static_assert(isotope::Machine<machine>);
