#pragma once
/// The settings of isotope-generate.
#include "../support/diagnose_settings.hpp"
#include "../support/machine_settings.hpp"

#include <isotope/config/flags.hpp>
#include <isotope/config/reflect.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace generate_program {

inline constexpr std::string_view program = "isotope-generate";
inline const std::vector<std::string> switches = {"version", "help"};

struct settings {
  std::string checkpoint;
  std::string model;
  std::string prompt;
  std::string prompts;
  std::int64_t tokens = 500;
  double temperature = 0.8;
  std::int64_t top_k = 0;
  double top_p = 1;
  double min_p = 0;
  double repetition_penalty = 1;
  std::uint64_t seed = 1;
  std::string stop;
  bool truncate = false;
  std::int64_t slots = 8;
  std::string adapters;
  std::string perplexity;
  std::string save_quantised;
  support::machine_settings machine;
  support::diagnose_settings diagnose;
};

inline isotope::config::help_words words_of_help() {
  isotope::config::help_words words;
  words.program = program;
  words.opening = "Continues prompts with a model that isotope-train has trained, or with one of Hugging Face.";
  words.closing = "exit codes: 0 done, 1 failed while running, 2 bad usage, checkpoint or folder, 130 interrupted";
  words.meanings = {
      {"checkpoint", "a folder (its newest checkpoint is taken) or one file, such as DIR/best.safetensors"},
      {"model", "a folder of Hugging Face with config.json, model.safetensors and a tokenizer, instead of a checkpoint"},
      {"prompt", "what to continue; without: a line end, or with --model an end-of-text token. With --model it may be given several times"},
      {"prompts", "with --model: a file whose lines are prompts"},
      {"tokens", "how many tokens to add"},
      {"temperature", "below 1 sharper, above 1 flatter, 0 always the likeliest"},
      {"top_k", "draw among the K likeliest; 0: all"},
      {"top_p", "draw among the fewest that reach probability P"},
      {"min_p", "with --model: draw among tokens with at least P times the probability of the likeliest"},
      {"repetition_penalty", "with --model: divides positive logits of tokens that the text has, and multiplies negative ones"},
      {"stop", "with --model: a text ends before this string"},
      {"truncate", "with --model: cut a prompt that is longer than the context to its last tokens; without: refuse it"},
      {"slots", "with --model: how many prompts are continued at once"},
      {"adapters", "with --model: a folder of LoRA adapters, as isotope-train and peft save them, which are added to the weights"},
      {"perplexity",
       "with --model: a text file, whose perplexity is printed, and what the format of --weights costs; nothing is generated"},
      {"save_quantised",
       "with --model and --weights q8_0 or q4_0: a folder for the model with weights in that format; nothing is generated"},
      {"seed", "the same seed gives the same text"},
      {"version", "what the program was built from"},
      {"help", "this text"}};
  words.meanings.insert(support::machine_meanings().begin(), support::machine_meanings().end());
  words.meanings.insert(support::diagnose_meanings().begin(), support::diagnose_meanings().end());
  return words;
}

}  // namespace generate_program

BOOST_HANA_ADAPT_STRUCT(generate_program::settings, checkpoint, model, prompt, prompts, tokens, temperature, top_k, top_p, min_p,
                        repetition_penalty, seed, stop, truncate, slots, adapters, perplexity, save_quantised, machine, diagnose);
