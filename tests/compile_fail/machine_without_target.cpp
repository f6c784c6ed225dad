// expect: static.assert
// note: satisf.*HasTarget
// never: satisf.*(AppliesOps|DeclaresParams|DeclaresInputs|DescribesValues)
// For a machine without `target`, the diagnostic names that part of the concept and no other.
#include <isotope/core/tape.hpp>

struct machine : private isotope::tape {
  using tape::apply;
  using tape::describe;
  using tape::input;
  using tape::param;
  using tape::program;
};
static_assert(isotope::Machine<machine>);
