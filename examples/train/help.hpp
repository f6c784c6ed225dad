#pragma once
/// The text of --help: every setting by its shortest flag, grouped as in the configuration file.
#include "settings.hpp"
#include "sizes.hpp"

#include <isotope/config/arguments.hpp>
#include <isotope/config/table.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace train_program {

/// What a field means; empty for a field that nobody described.
inline std::string_view meaning_of(std::string_view key) {
  static constexpr std::pair<std::string_view, std::string_view> meanings[] = {
      {"model.layers", "transformer blocks"},
      {"model.heads", "attention heads"},
      {"model.width", "channels"},
      {"model.context", "longest window that the model can read"},
      {"model.dropout", "probability to drop a value, in [0, 1)"},
      {"training.steps", "optimizer steps in all"},
      {"training.seed", "of weights, windows and dropout"},
      {"training.batch", "windows per micro-batch"},
      {"training.length", "tokens per window"},
      {"training.accumulate", "micro-batches per step"},
      {"training.schedule", "cosine, linear, constant or wsd"},
      {"training.learning_rate", "after the warm-up"},
      {"training.min_learning_rate", "at the end"},
      {"training.warmup", "steps of rising rate"},
      {"training.beta1", "AdamW's first decay"},
      {"training.beta2", "AdamW's second decay"},
      {"training.epsilon", "AdamW's epsilon"},
      {"training.weight_decay", "of matrices, decoupled"},
      {"training.clip", "largest global gradient norm; 0: no clipping"},
      {"training.eval_every", "steps between validations; 0: at the end only"},
      {"training.patience", "validations without a better loss before stopping; 0: never"},
      {"training.non_finite", "a NaN or infinite loss: stop, or skip the step"},
      {"input.text", "file to train on; default: this library's headers"},
      {"input.data", "char, byte or tokens (16-bit numbers)"},
      {"input.vocab", "size of the vocabulary of a token file"},
      {"checkpoint.dir", "folder for checkpoints; default: none are kept"},
      {"checkpoint.keep", "newest checkpoints to keep, besides the best"},
      {"checkpoint.every", "steps between checkpoints; 0: at the end only"},
      {"checkpoint.resume", "go on from the newest checkpoint"},
      {"checkpoint.stop_after", "finish this step, save and end; 0: do not"},
      {"output.json", "file for JSON lines: step, eval, done"},
      {"output.plot", "file for an SVG picture of the loss"},
      {"machine.threads", "0: as many as the machine has"},
      {"machine.memory_mib", "most memory that the plan may need; 0: what the machine has"},
  };
  for (const auto& [name, meaning] : meanings)
    if (name == key) return meaning;
  return {};
}

inline std::string help_text() {
  const auto fields = isotope::config::fields_of(settings{});
  std::vector<std::vector<std::string>> rows;
  std::string group;
  for (const auto& f : fields) {
    const auto dot = f.key.find('.');
    if (f.key.substr(0, dot) != group) {
      group = f.key.substr(0, dot);
      rows.push_back({"[" + group + "]"});
    }
    const std::string leaf = isotope::config::flag_of(f.key.substr(dot + 1));
    // `checkpoint.dir` is --checkpoint-dir in full: --dir alone would not say of what.
    const bool full = f.key == "checkpoint.dir" || f.key == "checkpoint.every";
    rows.push_back(
        {"  " + (full ? isotope::config::flag_of(f.key) : leaf), f.value == "\"\"" ? "" : f.value, std::string(meaning_of(f.key))});
  }
  std::string sizes;
  for (const auto& s : named_sizes()) sizes += (s.name == default_size ? "  " + s.name + " (default)\n" : "  " + s.name + "\n");
  return "usage: isotope-train [--size NAME] [--text FILE] [--steps N] [flags]\n\n"
         "Trains a GPT on text: prints losses, keeps checkpoints, resumes bit for bit.\n\n"
         "  --size NAME      a named size, below; it sets [model] and [training]\n"
         "  --config FILE    a .toml or .json file with any of the fields below\n"
         "  --print-config   every field, its value and the layer that set it; trains nothing\n"
         "  --version        what the program was built from\n"
         "  --help           this text\n\n"
         "Fields as flags, with the defaults of " +
         std::string(default_size) +
         ". In a file, [groups] are tables and dashes are underscores; as variables,\n"
         "ISOTOPE_MODEL_WIDTH. A size is weakest, then the file, variables, flags.\n\n" +
         isotope::config::columns(rows) + "\nsizes:\n" + sizes +
         "\nexit codes: 0 done, 1 failed while running, 2 bad usage, configuration or data, 130 interrupted (the step is finished and "
         "saved)\n";
}

}  // namespace train_program
