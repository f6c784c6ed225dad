#pragma once
/// The switches of isotope-info.
#include "../support/command_words.hpp"

#include <isotope/config/flags.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace info_program {

inline constexpr std::string_view program = "isotope-info";
inline const std::vector<std::string> switches = {"flags", "kernels", "version", "help"};
/// Those of the command rank.
inline constexpr support::flag_meaning rank_flags[] = {
    {"--measure", "", "isotope-info rank: measures the devices of this build that have no figures in FOLDER"}};

inline isotope::config::help_words words_of_help() {
  isotope::config::help_words words;
  words.program = program;
  words.opening =
      "Prints what the program was built from, every device of its backend and what it can do, the machine, and the kernels of its target.";
  words.closing =
      "isotope-info inspect FILE lists the tensors and notes of a safetensors file, a checkpoint's among them.\n"
      "isotope-info plan SIZE BATCH LENGTH gives the memory that training a GPT takes, without a device.\n"
      "isotope-info calibrate FOLDER [SIZE BATCH LENGTH] measures the device, keeps the figures in FOLDER, and predicts a training step "
      "from them.\n"
      "isotope-info rank FOLDER SIZE BATCH LENGTH [--measure] orders devices by the predicted time of a training step: those of this\n"
      "build, by their figures in FOLDER, and those that other builds have ranked there. --measure measures the devices of this\n"
      "build that have no figures.";
  words.meanings = {{"flags", "every flag and variable of every program, as in docs/FLAGS.md"},
                    {"kernels", "every kernel: op, precision, set; where kernels are shaders, also the variants of each"},
                    {"version", "what the program was built from"},
                    {"help", "this text"}};
  return words;
}

}  // namespace info_program
