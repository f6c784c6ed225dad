#pragma once
/// The settings of isotope-mlp; its model and its training are constants.
#include "../support/diagnose_settings.hpp"
#include "../support/machine_settings.hpp"

#include <isotope/config/flags.hpp>
#include <isotope/config/reflect.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace mlp_program {

inline constexpr std::string_view program = "isotope-mlp";
inline const std::vector<std::string> switches = {"version", "help"};

struct settings {
  support::machine_settings machine;
  support::diagnose_settings diagnose;
};

inline isotope::config::help_words words_of_help() {
  isotope::config::help_words words;
  words.program = program;
  words.opening = "Trains a small classifier on two spirals, planned by the compiler.";
  words.meanings = {{"version", "what the program was built from"}, {"help", "this text"}};
  words.meanings.insert(support::machine_meanings().begin(), support::machine_meanings().end());
  words.meanings.insert(support::diagnose_meanings().begin(), support::diagnose_meanings().end());
  words.closing = "exit codes: 0 done, 1 failed while running, 2 bad usage";
  return words;
}

}  // namespace mlp_program

BOOST_HANA_ADAPT_STRUCT(mlp_program::settings, machine, diagnose);
