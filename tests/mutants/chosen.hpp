#pragma once
/// Which planted bug is active in a mutant build. mutate.py copies this header into the tree of that build only.
#include <type_traits>

#if defined(ISOTOPE_EMULATED_DEVICE)
#include <string_view>

extern "C" char** environ;
#endif

namespace isotope::mutants {

#if defined(ISOTOPE_MUTANT)
/// Device code that is compiled once for each bug, whose number the compiler is given.
constexpr bool chosen(int n) { return n == ISOTOPE_MUTANT; }
#else
#if defined(ISOTOPE_EMULATED_DEVICE)
inline int number_in_environment() {
  constexpr std::string_view name = "ISOTOPE_MUTANT=";
  int n = 0;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    if (const std::string_view text = *entry; text.substr(0, name.size()) == name)
      for (const char digit : text.substr(name.size())) n = 10 * n + (digit - '0');
  return n;
}
/// The number of the active bug in a module of the emulated device, which overwrites all variables in .bss before each launch.
[[gnu::section(".data")]] static int number = number_in_environment();
#else
/// The number of the active bug; 0: none. It is set once, before main.
inline int number = 0;
#endif

/// The active bug. In constant expressions it is always 0, so that plans made by the compiler are correct.
constexpr int shown() { return std::is_constant_evaluated() ? 0 : number; }
constexpr bool chosen(int n) { return shown() == n; }
#endif

}  // namespace isotope::mutants
