#pragma once
/// All settings of isotope-train, which come from a named size, a file, variables or flags.
#include "../support/diagnose_settings.hpp"
#include "../support/machine_settings.hpp"
#include "../support/mesh_settings.hpp"
#include "../support/model_settings.hpp"

#include <isotope/config/reflect.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace train_program {

using support::machine_settings;
using support::mesh_settings;
using support::model_settings;

inline constexpr std::string_view program = "isotope-train";
inline const std::vector<std::string> switches = {"print-config", "version", "help"};

struct training_settings {
  std::int64_t steps = 2000;
  std::uint64_t seed = 1;
  std::int64_t batch = 12, length = 64, accumulate = 1;
  std::string schedule = "cosine";
  double learning_rate = 1e-3, min_learning_rate = 1e-4;
  std::int64_t warmup = 100;
  double beta1 = 0.9, beta2 = 0.99, epsilon = 1e-8, weight_decay = 0.1, clip = 1;
  std::int64_t eval_every = 250, patience = 0;
  std::string non_finite = "stop", update = "after_backward", recompute = "none";
  std::int64_t head_chunks = 1;
  std::int64_t lora = 0;  // rank of the adapters; 0: all weights are trained
  double lora_alpha = 16;
  std::string lora_targets = "attention";
  std::int64_t shuffle_window = 65536;  // of token shards
};

struct input_settings {
  std::string text;           // a path; empty: the embedded corpus
  std::string data = "char";  // char, byte, tokens, text, or a folder of token shards
  std::int32_t vocab = 0;     // of a token file
  bool shards() const { return data != "char" && data != "byte" && data != "tokens" && data != "text"; }
};

/// Folders of Hugging Face.
struct folder_settings {
  std::string from;      // the run begins with the weights there
  std::string adapters;  // and with the adapters here
  bool partial = false;
  std::string save_hf;        // the last weights are saved there
  std::string save_adapters;  // and the last adapters here
};

struct checkpoint_settings {
  std::string dir;
  std::int32_t keep = 3;
  std::int64_t every = 0;
  bool resume = false;
  std::int64_t stop_after = 0;
};

struct output_settings {
  std::string json, plot, report, tensorboard;
};

/// The reports of a run on its steps. They are paths of files, `-` for stderr.
struct watch_settings {
  std::string dump_nodes;  // of the first step of this process
  std::string trace;       // of its second step, which no first use slows down; of the first, if there is only one
  std::string profile;     // of the loop
  std::string gradients;   // of every gradients_every-th step; a resumed run appends to the file
  std::int64_t gradients_every = 1;
  bool nan_trace = false;
  bool bench_dispatch_only = false;
  std::string calibration;  // a folder
  bool steps() const { return !dump_nodes.empty() || !trace.empty() || !gradients.empty() || nan_trace; }
};

/// Repeats a run recorded elsewhere: the paths of its file and of the results here.
struct trace_settings {
  std::string in, out;
  bool asked() const { return !in.empty() || !out.empty(); }
};

struct settings {
  model_settings model;
  training_settings training;
  input_settings input;
  folder_settings folder;
  checkpoint_settings checkpoint;
  output_settings output;
  watch_settings watch;
  trace_settings trace;
  mesh_settings mesh;
  machine_settings machine;
  support::diagnose_settings diagnose;
};

/// The part of mesh_settings that a checkpoint keeps.
struct kept_mesh {
  std::int32_t devices = 1, tensor = 1, zero = 0;
};

/// The settings that a checkpoint keeps: what the next step depends on, without any path or option of one process.
struct kept_settings {
  std::string size;
  model_settings model;
  training_settings training;
  kept_mesh mesh;
};

}  // namespace train_program

BOOST_HANA_ADAPT_STRUCT(train_program::training_settings, steps, seed, batch, length, accumulate, schedule, learning_rate,
                        min_learning_rate, warmup, beta1, beta2, epsilon, weight_decay, clip, eval_every, patience, non_finite, update,
                        recompute, head_chunks, lora, lora_alpha, lora_targets, shuffle_window);
BOOST_HANA_ADAPT_STRUCT(train_program::input_settings, text, data, vocab);
BOOST_HANA_ADAPT_STRUCT(train_program::folder_settings, from, adapters, partial, save_hf, save_adapters);
BOOST_HANA_ADAPT_STRUCT(train_program::checkpoint_settings, dir, keep, every, resume, stop_after);
BOOST_HANA_ADAPT_STRUCT(train_program::output_settings, json, plot, report, tensorboard);
BOOST_HANA_ADAPT_STRUCT(train_program::watch_settings, dump_nodes, trace, profile, gradients, gradients_every, nan_trace,
                        bench_dispatch_only, calibration);
BOOST_HANA_ADAPT_STRUCT(train_program::trace_settings, in, out);
BOOST_HANA_ADAPT_STRUCT(train_program::settings, model, training, input, folder, checkpoint, output, watch, trace, mesh, machine, diagnose);
BOOST_HANA_ADAPT_STRUCT(train_program::kept_mesh, devices, tensor, zero);
BOOST_HANA_ADAPT_STRUCT(train_program::kept_settings, size, model, training, mesh);
