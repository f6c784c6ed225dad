#pragma once
/// The text of --help: the meaning of every setting.
#include "settings.hpp"
#include "sizes.hpp"

#include <isotope/config/flags.hpp>
#include <isotope/config/reflect.hpp>

#include <string>
#include <vector>

namespace train_program {

inline isotope::config::help_words words_of_help() {
  isotope::config::help_words words;
  words.program = program;
  words.opening = "Trains a GPT on text: prints losses, keeps checkpoints, resumes bit for bit.";
  words.meanings = {
      {"size", "a named size, below; it sets [model] and [training]"},
      {"config", "a .toml or .json file with any of these fields"},
      {"print-config", "every field, its value and the layer that set it; trains nothing"},
      {"version", "what the program was built from"},
      {"help", "this text"},
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
      {"training.update", "of weights: after_backward, or within_backward, which keeps no gradients and needs --clip 0"},
      {"training.recompute", "in the backward pass, instead of keeping it: none, cheap (norms and activations), keep_matmuls or all"},
      {"training.head_chunks", "chunks of rows in which logits and their gradients are computed; 0: as few as fit the memory"},
      {"training.lora", "rank of adapters, which alone are trained; 0: none, and all weights are. docs/FINE_TUNING.md"},
      {"training.lora_alpha", "the product of an adapter's matrices is multiplied by alpha / rank"},
      {"training.lora_targets", "linear layers that have adapters: attention, or all in each block"},
      {"training.shuffle_window", "of token shards: among how many windows that lie together the order is random"},
      {"input.text", "file to train on; default: this library's headers"},
      {"input.data",
       "char, byte, tokens (16-bit numbers), text, encoded by the tokenizer of --from, or a folder of isotope-tokenize shards, without "
       "--text"},
      {"input.vocab", "size of the vocabulary of a token file"},
      {"folder.from",
       "folder of a GPT-2, Llama or Qwen that transformers saved, whose sizes and weights the run begins with; docs/FINE_TUNING.md"},
      {"folder.adapters",
       "folder of LoRA adapters of that model, as --save-adapters and peft save them, which are trained on; it sets --lora"},
      {"folder.partial", "load what --from and --adapters have, though tensors are missing or left over"},
      {"folder.save_hf", "folder for the last weights, which transformers loads, adapters applied; must not hold a model"},
      {"folder.save_adapters", "folder for the last adapters, which peft loads"},
      {"checkpoint.dir", "folder for checkpoints; default: none are kept"},
      {"checkpoint.keep", "newest checkpoints to keep, besides the best"},
      {"checkpoint.every", "steps between checkpoints; 0: at the end only"},
      {"checkpoint.resume", "go on from the newest checkpoint"},
      {"checkpoint.stop_after", "finish this step, save and end; 0: do not"},
      {"output.json", "file for JSON lines: run, arena, kernels, step, eval, done. docs/REPORTS.md"},
      {"output.plot", "file for an SVG picture of the loss"},
      {"output.report", "file for an HTML page of the run, as isotope-report makes them of JSON lines. docs/REPORTS.md"},
      {"output.tensorboard",
       "folder for event files, which TensorBoard shows while the run goes on; made where it is missing. docs/REPORTS.md"},
      {"watch.dump_nodes", "file, or - for stderr: largest magnitude, mean and NaNs of every node, in the first step of this process"},
      {"watch.trace", "file for the launches of the second step, for chrome://tracing and ui.perfetto.dev"},
      {"watch.profile", "file, or - for stderr: times of batches, steps, validations and saves"},
      {"watch.gradients", "file, or - for stderr: norm, largest magnitude, zeros and NaNs of the gradient of every tensor"},
      {"watch.gradients_every", "steps between its entries"},
      {"watch.nan_trace", "after a step that is not finite, find the first node that wrote such a number; on stderr"},
      {"watch.bench_dispatch_only", "time the steps alone: no loss is read back, nothing is validated or saved"},
      {"watch.calibration",
       "folder of isotope-info calibrate: what it says of the time of a step, beside the measured one. docs/REPORTS.md"},
      {"trace.in", "safetensors file of a run made elsewhere, to be made again; docs/TRACES.md"},
      {"trace.out", "safetensors file for what came of it: losses, norms, first gradients, last weights"},
  };
  words.meanings.insert(support::mesh_meanings().begin(), support::mesh_meanings().end());
  words.meanings.insert(support::machine_meanings().begin(), support::machine_meanings().end());
  words.meanings.insert(support::diagnose_meanings().begin(), support::diagnose_meanings().end());
  // `checkpoint.dir` is shown as --checkpoint-dir, because --dir alone would be unclear.
  words.in_full = {"checkpoint.dir", "checkpoint.every", "trace.in", "trace.out"};
  words.closing = "The defaults are those of " + std::string(default_size) +
                  ". In a file, [groups] are tables and dashes are underscores; as variables, ISOTOPE_MODEL_WIDTH.\n"
                  "A size is weakest, then the file, variables, flags.\n\nsizes:\n";
  for (const auto& s : named_sizes()) words.closing += "  " + s.name + (s.name == default_size ? " (default)\n" : "\n");
  words.closing +=
      "\nexit codes: 0 done, 1 failed while running, 2 bad usage, configuration or data, 130 interrupted (steps in flight are finished and "
      "saved)";
  return words;
}

inline std::vector<isotope::config::field> all_fields() {
  using isotope::config::field_kind;
  auto fields = isotope::config::fields_of(settings{});
  fields.insert(fields.begin(), {{"size", field_kind::text, {}}, {"config", field_kind::text, {}}});
  return fields;
}
inline std::string help_text() { return isotope::config::flag_help(all_fields(), switches, words_of_help()); }

}  // namespace train_program
