#pragma once
/// One training run: combines data, session, checkpoints and the loop.
#include "../support/clock.hpp"
#include "../support/exit_code.hpp"
#include "../support/gpt_session.hpp"
#include "../support/interrupt.hpp"
#include "../support/output.hpp"
#include "../support/plan_reports.hpp"
#include "../support/report_file.hpp"
#include "../support/run_options.hpp"
#include "../support/terminal.hpp"
#include "configuration.hpp"
#include "console.hpp"
#include "data_source.hpp"
#include "dispatch_bench.hpp"
#include "mesh_run.hpp"
#include "prediction.hpp"
#include "rate.hpp"
#include "run_parts.hpp"
#include "settings.hpp"
#include "watched_session.hpp"

#include <isotope/train/checkpointing.hpp>
#include <isotope/train/profile.hpp>
#include <isotope/train/trainer.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace train_program {

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

/// @param predicted_usec  of each step of the plan; may be empty
template <class Session, class Store>
isotope::result<isotope::train::done_event> train_and_draw(Session& session, const data_source& data, Store& store, console& sink,
                                                           run_log& log, const settings& s, isotope::train::run_state state,
                                                           std::span<const double> predicted_usec) {
  const std::int64_t steps = trainer_options_of(s).steps - state.step;
  // A device that is given steps ahead of it loses by a step that is looked into: there --trace asks for the times.
  const bool timed = !s.watch.trace.empty() || (!s.output.report.empty() && Session::frames == 1);
  watched_session<Session> watched(session, s.watch, timed && log.listens() ? &log : nullptr, steps, predicted_usec);
  auto done = s.watch.steps() || timed ? train(watched, data, store, sink, s, state) : train(session, data, store, sink, s, state);
  if (auto r = watched.finish(); done && !r) return std::move(r).error();
  if (const std::string path = plot_path(s); !path.empty() && !sink.curves.train.empty()) {
    auto drawn = isotope::io::write_file(path, loss_plot(sink.curves));
    if (done && !drawn) return std::move(drawn).error();
    if (drawn) sink.print("plot " + path);
  }
  if (!s.output.report.empty()) {
    auto written = write_run_page(s, sink.curves.title, log);
    if (done && !written) return std::move(written).error();
    if (written) sink.print("page " + s.output.report);
  }
  return done;
}

/// Trains as configured; returns the process's exit code.
inline int run(configuration c) {
  int code = support::success;
  const settings& s = c.loaded.value;
  if (auto r = check_folders(s); support::failed(program, r, code)) return code;
  if (auto r = s.mesh.writes() ? make_model_folders(s.folder) : isotope::result<void>(); support::failed(program, r, code)) return code;
  const model_source* const from = c.source ? &*c.source : nullptr;
  auto data = open_data(s, from);
  if (support::failed(program, data, code)) return code;
  if (auto r = check_vocabulary(c, data->vocab().size()); support::failed(program, r, code)) return code;

  const support::trained_model model = model_of(from, s, data->vocab().size());
  if (s.mesh.several()) return run_on_mesh(c, *data, model);
  const support::run_options options{program, s.machine, s.diagnose, s.watch.bench_dispatch_only};
  const support::training_shape shape = shape_of(s, options.budget());
  isotope::device_info about;
  auto session = support::open_training(model, shape, options, &about);
  if (support::failed(program, session, code)) return code;
  std::optional<prediction> predicted;
  if (!s.watch.calibration.empty()) {
    auto p = predict(s, model, shape, options, about, session->plan());
    if (support::failed(program, p, code)) return code;
    predicted = *std::move(p);
  }

  isotope::train::run_identity identity = run_identity_of(c, model, *data);
  report_skipped(c);
  const auto begin = begin_of(*session, c, identity, model);
  if (support::failed(program, begin, code)) return code;
  const isotope::train::run_state state = begin->state;
  for (const std::string& line : begin->lines) support::print(line + "\n");
  c.from.reset();  // its tensors are in the session

  if (s.watch.bench_dispatch_only) {
    support::install_interrupt_handler();
    auto line = bench_dispatches(*session, *data, trainer_options_of(s));
    if (support::failed(program, line, code)) return code;
    support::print((predicted ? predicted->line() + "\n" : "") + *line + "\n");
    support::describe_end(program, s.diagnose, *session);
    return support::interrupt_requested ? support::interrupted : support::success;
  }

  auto begun = begin_log(c, model, state.step, predicted ? predicted->fields() : std::string());
  if (support::failed(program, begun, code)) return code;
  run_log& log = begun->log;
  if (log.listens()) log.write(isotope::train::arena_line(session->plan(), state.step));

  console sink(support::terminal_width(), log);
  sink.curves = std::move(begun->curves);
  sink.print(first_line(c, *data, trained_of(*session, model), model, memory_text(*session)));
  if (state.step > 0) sink.print("resumed after step " + std::to_string(state.step));
  if (predicted) sink.print(predicted->line()), sink.comparison.emplace(*predicted);
  const auto usec = predicted ? std::span<const double>(predicted->usec) : std::span<const double>();

  support::install_interrupt_handler();
  isotope::result<isotope::train::done_event> done = isotope::train::done_event{};
  if (c.folder) {
    isotope::train::folder_store store(*c.folder, std::move(identity));
    done = train_and_draw(*session, *data, store, sink, log, s, state, usec);
  } else {
    isotope::train::no_checkpoints store;
    done = train_and_draw(*session, *data, store, sink, log, s, state, usec);
  }
  support::describe_end(program, s.diagnose, *session);
  auto closed = log.close();
  if (done && support::failed(program, closed, code)) return code;
  if (support::failed(program, done, code)) return code;
  const auto saved = save_model(*session, from, model, s.folder);
  if (support::failed(program, saved, code)) return code;
  const auto adapters = save_adapters(*session, model, s.folder);
  if (support::failed(program, adapters, code)) return code;
  if (auto r = save_tokenizer(s, *data); support::failed(program, r, code)) return code;
  support::print(*saved + *adapters);
  return done->why == isotope::train::ending::interrupted ? support::interrupted : support::success;
}

}  // namespace train_program
