#pragma once
/// Checks what no single field can express, ranges and how settings must fit together, before anything is opened.
#include "settings.hpp"

#include <isotope/config/load.hpp>
#include <isotope/core/error.hpp>
#include <isotope/io/shard_manifest.hpp>

#include <cmath>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>

namespace train_program {

/// What a run on several devices does not do.
template <class Refuse> void check_mesh(const settings& s, const Refuse& refuse) {
  const isotope::device_mesh mesh = support::mesh_of(s.mesh);
  const training_settings& t = s.training;
  if (t.batch % mesh.data != 0)
    refuse("training.batch",
           "is " + std::to_string(t.batch) + ", whose rows do not divide by " + std::to_string(mesh.data) + " groups of " +
               std::to_string(mesh.tensor) + (mesh.tensor == 1 ? " device" : " devices"),
           "give a multiple of " + std::to_string(mesh.data));
  if (t.update == "within_backward")
    refuse("training.update", "is 'within_backward', which keeps no gradients for other devices", "give --update after_backward");
  if (s.watch.steps() || s.watch.bench_dispatch_only)
    refuse("mesh.devices", "are " + std::to_string(mesh.ranks()) + ", and steps are looked into on one device alone",
           "leave out --dump-nodes, --trace, --gradients, --nan-trace and --bench-dispatch-only");
  if (!s.watch.calibration.empty())
    refuse("mesh.devices", "are " + std::to_string(mesh.ranks()) + ", and a calibration says nothing of what devices exchange",
           "leave out --calibration");
  if (!s.folder.save_hf.empty() && (mesh.tensor > 1 || s.mesh.zero > 0))
    refuse("folder.save_hf",
           "is given, and no device of data " + std::to_string(mesh.data) + ", tensor " + std::to_string(mesh.tensor) + ", zero " +
               std::to_string(s.mesh.zero) + " has whole weights",
           "save a checkpoint, and go on from it with --devices 1 --save-hf");
}

/// @error invalid_argument naming the layer that set the value, the field, the value and the range
inline isotope::result<void> check(const isotope::config::loaded<settings>& loaded) {
  using isotope::errc, isotope::fail;
  const settings& s = loaded.value;
  isotope::failure f{};
  bool ok = true;
  const auto refuse = [&](std::string_view key, std::string what, std::string fix) {
    if (!ok) return;
    ok = false;
    f = fail(errc::invalid_argument, std::move(what), std::string(key), std::move(fix));
    for (const isotope::config::setting& set : loaded.settings)
      if (set.key == key) f.where = set.origin + ": " + set.key;
  };
  const auto at_least = [&](std::string_view key, std::int64_t value, std::int64_t least, std::int64_t most = 1'000'000'000) {
    if (value < least) refuse(key, "is " + std::to_string(value), "give at least " + std::to_string(least));
    if (value > most) refuse(key, "is " + std::to_string(value), "give at most " + std::to_string(most));
  };
  const auto within = [&](std::string_view key, double value, double low, double high, std::string_view range) {
    if (!(value >= low && value < high)) refuse(key, "is " + isotope::io::number_text(value), "give a number in " + std::string(range));
  };
  // Steps compute in single precision: a number that f32 rounds to 0 or 1 would not be the requested one.
  const auto in_f32 = [&](std::string_view key, double value) {
    const auto single = float(value);
    if (value != 0 && !(std::fabs(single) >= std::numeric_limits<float>::min() && std::isfinite(single)))
      refuse(key, "is " + isotope::io::number_text(value) + ", which single precision has no normal number for",
             "give 0 or at least 1.2e-38");
    else if (value < 1 && single >= 1)
      refuse(key, "is " + isotope::io::number_text(value) + ", which is 1 in single precision", "give at most 0.99999994");
  };
  const auto one_of = [&](std::string_view key, const std::string& value, std::initializer_list<std::string_view> known) {
    std::string all;
    for (std::string_view k : known) {
      if (k == value) return;
      all += (all.empty() ? "" : ", ") + std::string(k);
    }
    refuse(key, "is '" + value + "'", "give one of " + all);
  };

  const model_settings& m = s.model;
  at_least("model.layers", m.layers, 1, 1000);
  at_least("model.heads", m.heads, 1, 10000);
  at_least("model.width", m.width, 1, 1000000);
  at_least("model.context", m.context, 1, 1000000);
  within("model.dropout", m.dropout, 0, 1, "[0, 1)");
  if (ok && s.folder.from.empty() && m.width % m.heads != 0)
    refuse("model.heads", "is " + std::to_string(m.heads) + ", which does not divide the width " + std::to_string(m.width),
           "change one of them");

  const training_settings& t = s.training;
  at_least("training.steps", t.steps, 1);
  at_least("training.batch", t.batch, 1);
  at_least("training.length", t.length, 1);
  at_least("training.accumulate", t.accumulate, 1);
  if (ok && t.length > m.context)
    refuse("training.length", "is " + std::to_string(t.length) + ", the model's context is " + std::to_string(m.context),
           "shorten the length or widen --context");
  one_of("training.schedule", t.schedule, {"cosine", "linear", "constant", "wsd"});
  within("training.learning_rate", t.learning_rate, 0, 1e30, "[0, 1e30)");
  within("training.min_learning_rate", t.min_learning_rate, 0, 1e30, "[0, 1e30)");
  at_least("training.warmup", t.warmup, 0);
  within("training.beta1", t.beta1, 0, 1, "[0, 1)");
  within("training.beta2", t.beta2, 0, 1, "[0, 1)");
  if (ok && !(t.epsilon > 0)) refuse("training.epsilon", "is " + isotope::io::number_text(t.epsilon), "give a positive number");
  within("training.epsilon", t.epsilon, 0, 1e30, "(0, 1e30)");
  within("training.weight_decay", t.weight_decay, 0, 1e30, "[0, 1e30)");
  within("training.clip", t.clip, 0, 1e30, "[0, 1e30); 0 does not clip");
  in_f32("training.learning_rate", t.learning_rate);
  in_f32("training.beta1", t.beta1);
  in_f32("training.beta2", t.beta2);
  in_f32("training.epsilon", t.epsilon);
  in_f32("training.weight_decay", t.weight_decay);
  in_f32("training.clip", t.clip);
  at_least("training.eval_every", t.eval_every, 0);
  at_least("training.patience", t.patience, 0);
  one_of("training.non_finite", t.non_finite, {"stop", "skip"});
  one_of("training.update", t.update, {"after_backward", "within_backward"});
  one_of("training.recompute", t.recompute, {"none", "cheap", "keep_matmuls", "all"});
  at_least("training.head_chunks", t.head_chunks, 0);
  at_least("training.lora", t.lora, 0, 65536);
  within("training.lora_alpha", t.lora_alpha, 0, 1e30, "(0, 1e30)");
  if (ok && !(t.lora_alpha > 0)) refuse("training.lora_alpha", "is 0, with which adapters change nothing", "give a positive number");
  if (ok && t.lora > 0 && s.folder.from.empty() && !s.checkpoint.resume)
    refuse("training.lora", "is " + std::to_string(t.lora) + ", and there is no model to adapt", "give --from");
  one_of("training.lora_targets", t.lora_targets, {"attention", "all"});
  if (ok && t.update == "within_backward" && t.clip > 0)
    refuse("training.update", "is 'within_backward', where no norm of all gradients is known to clip by",
           "give --clip 0, or --update after_backward");
  if (ok && t.update == "within_backward" && t.accumulate > 1)
    refuse("training.update", "is 'within_backward', which keeps no gradient for later micro-batches",
           "give --accumulate 1, or --update after_backward");

  const auto origin_of = [&](std::string_view key) {
    for (const isotope::config::setting& set : loaded.settings)
      if (set.key == key) return set.origin;
    return std::string();
  };
  at_least("training.shuffle_window", t.shuffle_window, 1, std::int64_t(1) << 40);
  const bool shards = s.input.shards();
  if (ok && shards && !isotope::io::has_manifest(s.input.data))
    refuse("input.data", "is '" + s.input.data + "'",
           "give one of char, byte, tokens, text, or a folder with the manifest.json that isotope-tokenize shards writes last");
  if (ok && shards && !s.input.text.empty()) refuse("input.text", "does not go with --data " + s.input.data, "leave one of them out");
  if (ok && s.input.data == "tokens" && s.input.text.empty())
    refuse("input.data", "is 'tokens', the built-in text is not", "give a token file with --text");
  if (ok && s.input.data == "text" && s.folder.from.empty())
    refuse("input.data", "is 'text', and there is no folder with a tokenizer", "give --from, or one of char and byte");
  if (s.input.data == "tokens") at_least("input.vocab", s.input.vocab, 1, 65536);
  else if (s.input.vocab != 0 && !(shards && origin_of("input.vocab").starts_with("size ")))
    refuse("input.vocab", "is " + std::to_string(s.input.vocab) + ", and the text decides the vocabulary",
           "leave it out, or give --data tokens");
  if (ok && s.folder.partial && s.folder.from.empty()) refuse("folder.partial", "has no folder to load from", "give --from");
  if (ok && !s.folder.adapters.empty() && s.folder.from.empty()) refuse("folder.adapters", "has no model to adapt", "give --from");
  if (ok && !s.folder.save_adapters.empty() && t.lora == 0) refuse("folder.save_adapters", "has no adapters to save", "give --lora");
  if (ok && !s.folder.save_adapters.empty() && s.folder.from.empty())
    refuse("folder.save_adapters", "are for a model that begins at random and is not saved in a folder", "give --from");
  at_least("checkpoint.keep", s.checkpoint.keep, 1);
  at_least("checkpoint.every", s.checkpoint.every, 0);
  at_least("checkpoint.stop_after", s.checkpoint.stop_after, 0);
  if (ok && s.checkpoint.dir.empty() && s.checkpoint.resume)
    refuse("checkpoint.resume", "has no folder to resume from", "give --checkpoint-dir");
  if (ok && s.checkpoint.dir.empty() && s.checkpoint.every > 0)
    refuse("checkpoint.every", "has no folder to save in", "give --checkpoint-dir");
  if (const auto o = objection_to(s.mesh)) refuse(o->key, o->what, o->fix);
  if (ok && s.mesh.several()) check_mesh(s, refuse);
  if (const auto o = objection_to(s.machine)) refuse(o->key, o->what, o->fix);
  if (const auto o = objection_to(s.diagnose)) refuse(o->key, o->what, o->fix);
  at_least("watch.gradients_every", s.watch.gradients_every, 1);
  if (ok && !s.watch.gradients.empty() && t.update == "within_backward")
    refuse("watch.gradients", "asks for gradients, and the update within the backward pass keeps none",
           "leave it out, or give --update after_backward");
  if (ok && s.watch.bench_dispatch_only && (s.watch.steps() || !s.watch.profile.empty()))
    refuse("watch.bench_dispatch_only", "reads nothing back, and other reports on steps are asked for", "ask for one of them");
  if (ok && s.watch.bench_dispatch_only &&
      (!s.checkpoint.dir.empty() || !s.output.json.empty() || !s.output.tensorboard.empty() || !s.folder.save_hf.empty() ||
       !s.folder.save_adapters.empty()))
    refuse("watch.bench_dispatch_only", "trains for the clock alone, and checkpoints, a log or a folder are asked for", "leave them out");
  // The tokens of one step are held in memory before any plan exists.
  if (ok && t.batch * t.length > (std::int64_t(1) << 31) / t.accumulate)
    refuse("training.batch",
           "of " + std::to_string(t.batch) + " x " + std::to_string(t.length) + " tokens x " + std::to_string(t.accumulate) +
               " micro-batches is more than 2^31 tokens a step",
           "lower one of them");
  if (!ok) return f;
  return {};
}

}  // namespace train_program
