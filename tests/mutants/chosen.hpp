#pragma once
/// Which planted bug a mutant build shows. Copied into its tree by mutate.py; no other build has it.
#include <type_traits>

namespace isotope::mutants {

/// 0: none. Set once, before main.
inline int number = 0;

/// The bug that is there. What a compiler evaluates is never broken: plans are made the same way in every build.
constexpr int shown() { return std::is_constant_evaluated() ? 0 : number; }
constexpr bool chosen(int n) { return shown() == n; }

}  // namespace isotope::mutants
