#pragma once
/// One training run: combines data, session, checkpoints and the loop.
#include "../support/clock.hpp"
#include "../support/exit_code.hpp"
#include "../support/gpt_session.hpp"
#include "../support/interrupt.hpp"
#include "../support/line_file.hpp"
#include "../support/output.hpp"
#include "../support/plan_reports.hpp"
#include "../support/report_file.hpp"
#include "../support/run_options.hpp"
#include "../support/terminal.hpp"
#include "configuration.hpp"
#include "console.hpp"
#include "data_source.hpp"
#include "dispatch_bench.hpp"
#include "earlier_log.hpp"
#include "rate.hpp"
#include "settings.hpp"
#include "watched_session.hpp"

#include <isotope/train/checkpointing.hpp>
#include <isotope/train/profile.hpp>
#include <isotope/train/trainer.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

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
  for (const std::string* path : {&s.output.plot, &s.watch.dump_nodes, &s.watch.trace, &s.watch.profile, &s.watch.gradients})
    if (auto r = support::check_folder_of(*path == "-" ? "" : *path); !r) return r;
  return support::check_report_folders(s.diagnose);
}

/// Trains, with a profile of the loop if one is requested. @error as trainer::run, write_failed
template <class Session, class Store>
isotope::result<isotope::train::done_event> train(Session& session, const data_source& data, Store& store, console& sink, const settings& s,
                                                  isotope::train::run_state state) {
  const auto run = [&](auto& profile) {
    isotope::train::trainer loop(session, data, store, sink, rate_of(s.training), support::seconds_now, support::interrupt_requested,
                                 trainer_options_of(s), state, profile);
    auto done = loop.run();
    sink.clear();
    return done;
  };
  if (s.watch.profile.empty()) return run(isotope::train::nothing_measured);
  isotope::train::loop_profile profile;
  auto done = run(profile);
  if (auto r = support::write_report(s.watch.profile, text_of(profile)); done && !r) return std::move(r).error();
  return done;
}

template <class Session, class Store>
isotope::result<isotope::train::done_event> train_and_draw(Session& session, const data_source& data, Store& store, console& sink,
                                                           const settings& s, isotope::train::run_state state) {
  const std::int64_t steps = trainer_options_of(s).steps - state.step;
  watched_session<Session> watched(session, s.watch, steps);
  auto done = s.watch.steps() ? train(watched, data, store, sink, s, state) : train(session, data, store, sink, s, state);
  if (auto r = watched.finish(); done && !r) return std::move(r).error();
  if (const std::string path = plot_path(s); !path.empty() && !sink.curves.train.empty()) {
    auto drawn = isotope::io::write_file(path, loss_plot(sink.curves));
    if (done && !drawn) return std::move(drawn).error();
    if (drawn) sink.print("plot " + path);
  }
  return done;
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

/// How many numbers the adapters have, where they alone are trained.
template <class Session> std::string trained_of(const Session& session, const support::trained_model& model) {
  if (!model.adapted()) return {};
  std::int64_t numbers = 0;
  for (const isotope::slot& x : session.parameters()) numbers += isotope::nn::is_adapter(x.path.view()) ? x.dims.count() : 0;
  return isotope::train::scaled(double(numbers)) + " in adapters of rank " + std::to_string(model.adapters.rank) + ", ";
}

/// Trains as configured; returns the process's exit code.
inline int run(configuration c) {
  int code = support::success;
  const settings& s = c.loaded.value;
  if (auto r = check_folders(s); support::failed(program, r, code)) return code;
  if (auto r = make_model_folders(s.folder); support::failed(program, r, code)) return code;
  const model_source* const from = c.source ? &*c.source : nullptr;
  auto data = open_data(s, from);
  if (support::failed(program, data, code)) return code;
  if (auto r = check_vocabulary(c, data->vocab().size()); support::failed(program, r, code)) return code;

  const support::trained_model model = model_of(from, s, data->vocab().size());
  const support::run_options options{program, s.machine, s.diagnose, s.watch.bench_dispatch_only};
  const auto update =
      s.training.update == "within_backward" ? isotope::update_policy::within_backward : isotope::update_policy::after_backward;
  const auto head = s.training.head_chunks > 0 ? isotope::head::in_chunks(s.training.head_chunks) : isotope::head::within(options.budget());
  const support::training_shape shape{s.training.batch, s.training.length,        s.training.accumulate > 1,
                                      update,           recompute_of(s.training), head};
  auto session = support::open_training(model, shape, options);
  if (support::failed(program, session, code)) return code;

  isotope::train::run_identity identity;
  identity.model = identity_of(model, s);
  identity.run = kept_text(c.loaded);
  identity.seed = s.training.seed;
  identity.micro_batches = s.training.accumulate;
  identity.vocab = data->vocab();
  identity.data = data->hash();

  isotope::train::run_state state;
  if (c.from) {
    for (const isotope::failure& f : c.from->skipped)
      static_cast<void>(support::report(program, isotope::fail(f.code, "skipped: " + f.what, f.where, f.fix)));
    auto restored = isotope::train::restore(*session, c.from->contents, identity, c.from->path);
    if (support::failed(program, restored, code)) return code;
    state = *restored;
    if (!c.changes.empty()) support::print("resumed otherwise than the run that wrote " + c.from->path + ": " + c.changes + "\n");
    if (const auto other = isotope::train::other_algorithms(*session, c.from->contents); !other.empty())
      support::print("resumed otherwise than the run that wrote " + c.from->path + ": " + other + "\n");
    c.from.reset();  // its tensors are in the session
  } else {
    session->initialize(s.training.seed);
    if (from != nullptr) {
      auto line = load_source(*session, *from, model, s.folder.partial);
      if (support::failed(program, line, code)) return code;
      support::print(*line + "\n");
    }
  }

  if (s.watch.bench_dispatch_only) {
    support::install_interrupt_handler();
    auto line = bench_dispatches(*session, *data, trainer_options_of(s));
    if (support::failed(program, line, code)) return code;
    support::print(*line + "\n");
    support::describe_end(program, s.diagnose, *session);
    return support::interrupt_requested ? support::interrupted : support::success;
  }

  std::optional<support::line_file> json;
  isotope::train::loss_curves earlier;
  if (!s.output.json.empty()) {
    if (state.step > 0) {
      auto log = cut_log(s.output.json, state.step);
      if (support::failed(program, log, code)) return code;
      earlier = *std::move(log);
    }
    auto file = support::line_file::open(s.output.json, state.step > 0);
    if (support::failed(program, file, code)) return code;
    json = *std::move(file);
  }

  console sink(support::terminal_width(), json ? &*json : nullptr);
  sink.curves = std::move(earlier);
  sink.curves.title = "isotope-train, " + title_of(c);
  sink.print(title_of(c) + ": " + isotope::train::scaled(double(model.parameters())) + " parameters, " + trained_of(*session, model) +
             std::to_string(data->token_count()) + " " + std::string(isotope::io::name_of(data->vocab().unit())) + ", vocabulary " +
             std::to_string(data->vocab().size()) + ", " + isotope::train::fixed(double(session->planned_bytes()) / (1 << 20), 1) +
             " MiB planned");
  if (state.step > 0) sink.print("resumed after step " + std::to_string(state.step));

  support::install_interrupt_handler();
  isotope::result<isotope::train::done_event> done = isotope::train::done_event{};
  if (c.folder) {
    isotope::train::folder_store store(*c.folder, std::move(identity));
    done = train_and_draw(*session, *data, store, sink, s, state);
  } else {
    isotope::train::no_checkpoints store;
    done = train_and_draw(*session, *data, store, sink, s, state);
  }
  support::describe_end(program, s.diagnose, *session);
  if (json) {
    auto closed = json->close();
    if (done && support::failed(program, closed, code)) return code;
  }
  if (support::failed(program, done, code)) return code;
  auto saved = save_model(*session, from, model, s.folder);
  if (support::failed(program, saved, code)) return code;
  if (auto r = save_tokenizer(s, *data); support::failed(program, r, code)) return code;
  support::print(*saved);
  return done->why == isotope::train::ending::interrupted ? support::interrupted : support::success;
}

}  // namespace train_program
