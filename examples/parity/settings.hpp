#pragma once
/// The settings of isotope-parity.
#include "../support/diagnose_settings.hpp"
#include "../support/machine_settings.hpp"

#include <isotope/config/flags.hpp>
#include <isotope/config/load.hpp>
#include <isotope/config/reflect.hpp>
#include <isotope/model/gpt.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace parity_program {

inline constexpr std::string_view program = "isotope-parity";
inline const std::vector<std::string> switches = {"version", "help"};

struct settings {
  std::string a = "cpu", b;  // backends; b defaults to the one that the program was built for
  std::int64_t steps = 16, batch = 2, length = 32;
  std::uint64_t seed = 1;
  double learning_rate = 1e-3;
  double loss_gate = 0, norm_gate = 0;  // 0: those of the precision
  std::string text, json;
  support::machine_settings machine;
  support::diagnose_settings diagnose;  // of b
};

inline constexpr std::string_view default_size = "char-gpt-cpu";
inline constexpr isotope::model::gpt two_layers_of_gpt2{2, 12, 768, 65, 1024};

/// The library's sizes, and two layers of GPT-2's width, which fit beside another backend.
inline std::vector<isotope::config::named_size<settings>> named_sizes() {
  std::vector<isotope::config::named_size<settings>> all = {{"gpt2-2-layers", settings{}}};
  for (const auto& [name, size] : isotope::model::gpt_sizes) all.push_back({std::string(name), settings{}});
  return all;
}
inline isotope::model::gpt model_of(std::string_view size, int vocab) {
  isotope::model::gpt g = two_layers_of_gpt2;
  for (const auto& [name, known] : isotope::model::gpt_sizes)
    if (name == size) g = known;
  g.vocab = vocab;
  return g;
}

inline isotope::config::help_words words_of_help() {
  isotope::config::help_words words;
  words.program = program;
  words.opening = "Trains one model from one seed on two backends at once and compares losses and gradient norms at every step.";
  words.meanings = {{"a", "the backend that is trusted"},
                    {"b", "the backend that is compared with it; default: the one that the program was built for"},
                    {"size", "a named size of isotope-train, or gpt2-2-layers: two layers of GPT-2's width"},
                    {"config", "a .toml or .json file with any of these fields"},
                    {"steps", "optimizer steps"},
                    {"batch", "windows per step"},
                    {"length", "tokens per window"},
                    {"seed", "of weights, windows and dropout"},
                    {"learning_rate", "after a warm-up of 100 steps"},
                    {"loss_gate", "largest relative difference of losses; 0: 1e-4 in f32, 2e-2 in bf16"},
                    {"norm_gate", "largest relative difference of gradient norms; 0: 1e-3 in f32, 2e-2 in bf16"},
                    {"text", "file to train on; default: this library's headers"},
                    {"json", "file for a report"},
                    {"version", "what the program was built from"},
                    {"help", "this text"}};
  words.meanings.insert(support::machine_meanings().begin(), support::machine_meanings().end());
  words.meanings.insert(support::diagnose_meanings().begin(), support::diagnose_meanings().end());
  words.closing = "exit codes: 0 within the gates at every step, 1 not, or failed while running, 2 bad usage";
  return words;
}
inline std::vector<isotope::config::field> all_fields() {
  using isotope::config::field_kind;
  auto fields = isotope::config::fields_of(settings{});
  fields.insert(fields.begin(), {{"size", field_kind::text, {}}, {"config", field_kind::text, {}}});
  return fields;
}
inline std::string help_text() { return isotope::config::flag_help(all_fields(), switches, words_of_help()); }

}  // namespace parity_program

BOOST_HANA_ADAPT_STRUCT(parity_program::settings, a, b, steps, batch, length, seed, learning_rate, loss_gate, norm_gate, text, json,
                        machine, diagnose);
