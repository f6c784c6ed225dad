// expect: static.assert
// note: satisf.*DeclaresParams
// never: satisf.*(HasTarget|AppliesOps|DeclaresInputs|DescribesValues)
// For a machine without `param`, the diagnostic names that part of the concept and no other.
#include <isotope/core/tape.hpp>

struct machine : private isotope::tape {
  using target = tape::target;
  using tape::apply;
  using tape::describe;
  using tape::input;
  using tape::program;
};
static_assert(isotope::Machine<machine>);
