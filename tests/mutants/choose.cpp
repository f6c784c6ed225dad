/// Activates the mutant whose number is in the environment variable ISOTOPE_MUTANT. This happens before main, so programs need no code for it.
#include <isotope/mutants/chosen.hpp>

#include "../../examples/support/environment.hpp"

#include <charconv>
#include <stdexcept>

namespace {

int number_in_environment() {
  const auto variables = support::captured_environment();
  const auto found = variables.find("ISOTOPE_MUTANT");
  if (found == variables.end()) return 0;
  int n = -1;
  const char *first = found->second.data(), *last = first + found->second.size();
  const auto [end, error] = std::from_chars(first, last, n);
  if (error != std::errc() || end != last || n < 0) throw std::invalid_argument("ISOTOPE_MUTANT='" + found->second + "' is no number");
  return n;
}

const int chosen_before_main = isotope::mutants::number = number_in_environment();

}  // namespace
