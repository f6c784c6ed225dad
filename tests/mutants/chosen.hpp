#pragma once
/// Which planted bug is active in a mutant build. mutate.py copies this header into the tree of that build only.
#include <type_traits>

namespace isotope::mutants {

/// The number of the active bug; 0: none. It is set once, before main.
inline int number = 0;

/// The active bug. In constant expressions it is always 0, so that plans made by the compiler are correct.
constexpr int shown() { return std::is_constant_evaluated() ? 0 : number; }
constexpr bool chosen(int n) { return shown() == n; }

}  // namespace isotope::mutants
