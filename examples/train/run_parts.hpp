#pragma once
/// What runs on one device and on several have in common.
#include "../support/exit_code.hpp"
#include "../support/gpt_session.hpp"
#include "../support/report_file.hpp"
#include "../support/report_page.hpp"
#include "configuration.hpp"
#include "data_source.hpp"
#include "earlier_log.hpp"
#include "model_source.hpp"
#include "run_log.hpp"
#include "settings.hpp"

#include <isotope/train/checkpointing.hpp>
#include <isotope/train/decimal.hpp>
#include <isotope/train/plan_lines.hpp>
#include <isotope/train/trainer.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace train_program {

inline isotope::train::trainer_options trainer_options_of(const settings& s) {
  const training_settings& t = s.training;
  isotope::train::trainer_options o;
  o.steps = t.steps, o.batch = t.batch, o.length = t.length, o.accumulate = t.accumulate;
  o.eval_every = t.eval_every, o.patience = t.patience;
  o.checkpoint_every = s.checkpoint.every, o.stop_after = s.checkpoint.stop_after;
  o.on_non_finite = t.non_finite == "skip" ? isotope::train::non_finite::skip : isotope::train::non_finite::stop;
  o.scalars.seed = t.seed;
  o.scalars.beta1 = t.beta1, o.scalars.beta2 = t.beta2, o.scalars.epsilon = float(t.epsilon);
  o.scalars.weight_decay = float(t.weight_decay), o.scalars.clip_norm = float(t.clip);
  return o;
}

/// Returns the path of the plot: --plot, or loss.svg beside the checkpoints, or none.
inline std::string plot_path(const settings& s) {
  if (!s.output.plot.empty()) return s.output.plot;
  return s.checkpoint.dir.empty() ? std::string() : s.checkpoint.dir + "/loss.svg";
}

/// Checks at the start that the output folders exist, not when the run ends.
inline isotope::result<void> check_folders(const settings& s) {
  for (const std::string* path :
       {&s.output.plot, &s.output.report, &s.watch.dump_nodes, &s.watch.trace, &s.watch.profile, &s.watch.gradients})
    if (auto r = support::check_folder_of(*path == "-" ? "" : *path); !r) return r;
  return support::check_report_folders(s.diagnose);
}

inline isotope::recompute_policy recompute_of(const training_settings& t) {
  using namespace isotope;
  return t.recompute == "cheap"          ? recompute::cheap
         : t.recompute == "keep_matmuls" ? recompute::keep_matmuls
         : t.recompute == "all"          ? recompute::all
                                         : recompute::none;
}

/// Checks that the text has the vocabulary of the folder's model. @error model_mismatch
inline isotope::result<void> check_vocabulary(const configuration& c, std::int64_t vocab) {
  if (!c.source || vocab == c.source->vocab()) return {};
  return isotope::fail(isotope::errc::model_mismatch,
                       "its vocabulary has " + std::to_string(vocab) + " entries, that of " + c.source->folder.path + " has " +
                           std::to_string(c.source->vocab()),
                       "the text", "give token ids that the model's tokenizer made: --data tokens --text FILE");
}

/// What a run trains, for its first line and its plot.
inline std::string title_of(const configuration& c) {
  if (!c.loaded.size.empty()) return "size " + c.loaded.size;
  return c.loaded.value.folder.from.empty() ? "model of a folder" : "model of " + c.loaded.value.folder.from;
}

/// The log of a run, and the losses of the part before it if it is resumed.
struct begun_log {
  run_log log;
  isotope::train::loss_curves curves;
};

/// Begins the log with what is known before the plan; that of a resumed run is cut back to the checkpoint first.
/// @param step  finished before this process
/// @param more  further fields of the event `run`
/// @error as cut_log, line_file::open, event_file::create
inline isotope::result<begun_log> begin_log(const configuration& c, const support::trained_model& model, std::int64_t step,
                                            std::string_view more = {}) {
  const output_settings& o = c.loaded.value.output;
  earlier_log earlier;
  if (step > 0 && !o.json.empty()) {
    auto cut = cut_log(o.json, step);
    if (!cut) return std::move(cut).error();
    earlier = *std::move(cut);
  }
  begun_log b{run_log(!o.report.empty(), std::move(earlier.lines)), std::move(earlier.curves)};
  b.curves.title = "isotope-train, " + title_of(c);
  if (!o.json.empty())
    if (auto r = b.log.open(o.json, step > 0); !r) return std::move(r).error();
  if (!o.tensorboard.empty())
    if (auto r = b.log.open_board(o.tensorboard, step); !r) return std::move(r).error();
  if (b.log.listens()) b.log.write(run_line(c, title_of(c), model.parameters(), step, more));
  return b;
}

/// Writes the page of --report. @error as write_page
inline isotope::result<void> write_run_page(const settings& s, const std::string& title, const run_log& log) {
  const support::page_run run{s.output.json.empty() ? title : s.output.json, log.kept()};
  return support::write_page(s.output.report, {&run, 1});
}

/// How the plans of a run depend on its settings. Of several devices, each has its rows of a batch.
/// @param budget  bytes that a plan may need
inline support::training_shape shape_of(const settings& s, std::int64_t budget) {
  const training_settings& t = s.training;
  support::training_shape shape;
  shape.mesh = support::mesh_of(s.mesh), shape.zero = s.mesh.zero;
  shape.batch = t.batch / shape.mesh.data, shape.length = t.length, shape.accumulate = t.accumulate > 1;
  shape.update = t.update == "within_backward" ? isotope::update_policy::within_backward : isotope::update_policy::after_backward;
  shape.recompute = recompute_of(t);
  shape.head = t.head_chunks > 0 ? isotope::head::in_chunks(t.head_chunks) : isotope::head::within(budget);
  return shape;
}

inline isotope::train::run_identity run_identity_of(const configuration& c, const support::trained_model& model, const data_source& data) {
  const settings& s = c.loaded.value;
  isotope::train::run_identity identity;
  identity.model = identity_of(model, s);
  identity.run = kept_text(c.loaded);
  identity.seed = s.training.seed;
  identity.micro_batches = s.training.accumulate;
  identity.vocab = data.vocab();
  identity.data = data.hash();
  return identity;
}

/// What a session begins with, and what there is to say of it.
struct run_begin {
  isotope::train::run_state state;
  std::vector<std::string> lines;
};

/// Gives a session the weights that a run begins with: those of a checkpoint, of a folder, or random ones.
/// @error as train::restore and load_source
inline isotope::result<run_begin> begin_of(support::session& session, const configuration& c, const isotope::train::run_identity& identity,
                                           const support::trained_model& model) {
  run_begin b;
  if (c.from) {
    auto restored = isotope::train::restore(session, c.from->contents, identity, c.from->path);
    if (!restored) return std::move(restored).error();
    b.state = *restored;
    for (const std::string& other : {c.changes, isotope::train::other_algorithms(session, c.from->contents)})
      if (!other.empty()) b.lines.push_back("resumed otherwise than the run that wrote " + c.from->path + ": " + other);
    return b;
  }
  session.initialize(c.loaded.value.training.seed);
  if (!c.source) return b;
  auto line = load_source(session, *c.source, model, c.loaded.value.folder.partial);
  if (!line) return std::move(line).error();
  b.lines.push_back(*std::move(line));
  return b;
}
/// Says which checkpoints were skipped, being damaged.
inline void report_skipped(const configuration& c) {
  if (!c.from) return;
  for (const isotope::failure& f : c.from->skipped)
    static_cast<void>(support::report(program, isotope::fail(f.code, "skipped: " + f.what, f.where, f.fix)));
}

/// How many numbers the adapters have, where they alone are trained.
template <class Session> std::string trained_of(const Session& session, const support::trained_model& model) {
  if (!model.adapted()) return {};
  std::int64_t numbers = 0;
  for (const isotope::slot& x : session.parameters())
    numbers += isotope::nn::is_adapter(x.path.view()) ? x.pieces.whole(x.dims).count() : 0;
  return isotope::train::scaled(double(numbers)) + " in adapters of rank " + std::to_string(model.adapters.rank) + ", ";
}

/// The memory that a session plans, and where the device says what was in use before the session opened, what both are together.
template <class Session> std::string memory_text(const Session& s) {
  const auto mib = [](std::int64_t bytes) { return isotope::train::fixed(double(bytes) / (1 << 20), 1) + " MiB "; };
  return mib(s.planned_bytes()) + "planned" +
         (s.taken_bytes() > 0 ? ", " + mib(s.planned_bytes() + s.taken_bytes()) + "with what was in use before" : "");
}

/// @param trained  what is trained of the model, with a comma and a space; empty: all
/// @param memory   memory_text of the session
inline std::string first_line(const configuration& c, const data_source& data, const std::string& trained,
                              const support::trained_model& model, const std::string& memory) {
  return title_of(c) + ": " + isotope::train::scaled(double(model.parameters())) + " parameters, " + trained +
         std::to_string(data.token_count()) + " " + std::string(isotope::io::name_of(data.vocab().unit())) + ", vocabulary " +
         std::to_string(data.vocab().size()) + ", " + memory;
}

}  // namespace train_program
