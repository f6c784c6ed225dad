// expect: static.assert
// note: satisf.*DeclaresParams
// never: satisf.*(HasTarget|AppliesOps|DeclaresInputs|DescribesValues)
// A machine without `param`: that part of the concept is pointed at, and no other.
#include <isotope/core/tape.hpp>

struct machine : private isotope::tape {
  using target = tape::target;
  using tape::apply;
  using tape::describe;
  using tape::input;
  using tape::program;
};
static_assert(isotope::Machine<machine>);
