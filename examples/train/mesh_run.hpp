#pragma once
/// One training run on several devices: every rank of this process runs the loop on a thread of its own, and rank 0 prints.
#include "../support/clock.hpp"
#include "../support/exit_code.hpp"
#include "../support/gpt_session.hpp"
#include "../support/interrupt.hpp"
#include "../support/output.hpp"
#include "../support/run_ranks.hpp"
#include "../support/terminal.hpp"
#include "configuration.hpp"
#include "console.hpp"
#include "data_source.hpp"
#include "mesh_session.hpp"
#include "rate.hpp"
#include "run_parts.hpp"

#include <isotope/interop/gathered_adapters.hpp>
#include <isotope/io/hash.hpp>
#include <isotope/train/profile.hpp>
#include <isotope/train/trainer.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace train_program {

/// Sends the events of rank 0 to its console; those of other ranks are the same.
struct rank_sink {
  console* to = nullptr;
  template <class Event> void operator()(const Event& e) const {
    if (to != nullptr) (*to)(e);
  }
};

/// Where rank 0 keeps checkpoints; other ranks send it their parts.
struct rank_store {
  isotope::train::folder_store* to = nullptr;
  bool keeps = false;
  template <class Session> isotope::result<std::string> save(Session& session, const isotope::train::run_state& state, bool best) {
    if (!keeps) return std::string();
    const auto watched =
        session.saving((best ? "the best checkpoint, after step " : "the checkpoint, after step ") + std::to_string(state.step) + ",");
    return to != nullptr ? to->save(session, state, best) : isotope::train::peer_store{}.save(session, state, best);
  }
};

/// A text that is the same for processes of the same run: they were given the same settings and data, and begin after the same step.
inline std::string run_id_of(const isotope::train::run_identity& identity, const support::rank_team& team, std::int64_t step) {
  const std::string text =
      identity.model + identity.run + std::to_string(identity.data) + std::to_string(team.mesh.tensor) + " " + std::to_string(team.zero);
  isotope::io::hasher h;
  h.add(std::as_bytes(std::span(text)));
  return "settings, data and step " + std::to_string(step) + " " + isotope::io::detail::hash_digits(h.value());
}

/// The mesh as an event of the log.
inline std::string mesh_line(const support::rank_team& team, std::int64_t step) {
  const auto number = [](const char* key, std::int64_t n) { return ",\"" + std::string(key) + "\":" + std::to_string(n); };
  return R"({"event":"mesh")" + number("step", step) + number("devices", team.mesh.ranks()) + number("data", team.mesh.data) +
         number("tensor", team.mesh.tensor) + number("zero", team.zero) + R"(,"ranks":")" + (team.processes() ? "processes" : "threads") +
         R"(","communicator":")" + support::device_groups<support::rank_device>::communicator(team) + "\"}";
}

/// Trains as configured; returns the process's exit code.
inline int run_on_mesh(configuration& c, const data_source& data, const support::trained_model& model) {
  int code = support::success;
  const settings& s = c.loaded.value;
  if (auto r = support::can_join_devices(); support::failed(program, r, code)) return code;
  const support::rank_team team = support::team_of(s.mesh);
  if (s.mesh.writes()) report_skipped(c);
  const support::run_options options{program, s.machine, s.diagnose};
  const bool shares_memory = support::rank_device::on_host && s.machine.memory_mib == 0;
  const std::int64_t budget = shares_memory ? options.budget() / team.here() : options.budget();
  auto plans = support::plan_run(model, shape_of(s, budget), options, budget);
  if (support::failed(program, plans, code)) return code;
  const isotope::train::run_identity identity = run_identity_of(c, model, data);
  const std::int64_t begun = c.from ? c.from->contents.state.step : 0;

  const bool leads = team.first() == 0;
  begun_log logged{run_log(false, {}), {}};
  if (leads) {
    auto opened = begin_log(c, model, begun);
    if (support::failed(program, opened, code)) return code;
    logged = *std::move(opened);
  }
  run_log& log = logged.log;
  if (log.listens()) log.write(mesh_line(team, begun));
  console sink(support::terminal_width(), log);
  sink.curves = std::move(logged.curves);
  isotope::train::loop_profile profile;
  std::optional<isotope::train::done_event> ending;
  std::string last_line;

  std::optional<isotope::train::folder_store> folder;
  if (c.folder) folder.emplace(*c.folder, identity);

  const support::diagnose_settings no_reports;
  const auto work = [&](support::rank_end& rank) -> isotope::result<void> {
    const support::run_options told{program, s.machine, rank.leads() ? s.diagnose : no_reports};
    auto session = support::load_run(rank.device, *plans, told);
    if (!session) return session.error();
    const bool first = rank.rank == team.first();
    const auto begin = begin_of(*session, c, identity, model);
    if (!begin) return begin.error();
    const isotope::train::run_state& state = begin->state;
    if (rank.leads() && log.listens()) log.write(isotope::train::arena_line(session->plan(), state.step));
    if (first) {
      for (const std::string& line : begin->lines) sink.print(line);
      sink.print(first_line(c, data, trained_of(*session, model), model, memory_text(*session)) + (rank.leads() ? " on each device" : ""));
      sink.print(team.text() + ", communicator " + support::device_groups<support::rank_device>::communicator(team));
      if (state.step > 0) sink.print("resumed after step " + std::to_string(state.step));
      support::install_interrupt_handler();
    }
    if (auto r = rank.control.barrier(); !r) return r;  // the first step is watched, and not the loading before it
    mesh_session on_mesh(*session, rank, state.step + 1);
    const std::int64_t left = s.training.steps - state.step;
    // As on one device: a device that is given steps ahead of it loses by a step that is looked into.
    if (rank.leads() && !s.output.report.empty() && support::session::frames == 1) on_mesh.time_step(log, state.step + (left < 2 ? 1 : 2));
    rank_store store{rank.leads() && folder ? &*folder : nullptr, !s.checkpoint.dir.empty()};
    rank_sink events{rank.leads() ? &sink : nullptr};
    isotope::train::loop_profile unread;
    isotope::train::trainer loop(on_mesh, data, store, events, rate_of(s.training), support::seconds_now, on_mesh.interrupted(),
                                 trainer_options_of(s), state, rank.leads() ? profile : unread);
    auto done = loop.run();
    if (!done) return std::move(done).error();
    const auto watched = on_mesh.saving("the model");
    if (rank.leads()) {
      auto saved = save_model(*session, c.source ? &*c.source : nullptr, model, s.folder);
      if (!saved) return std::move(saved).error();
      last_line = *std::move(saved);
    }
    if (!s.folder.save_adapters.empty()) {
      auto adapters = isotope::interop::gathered_adapters::of(on_mesh, rank.leads());
      if (!adapters) return std::move(adapters).error();
      auto saved = rank.leads() ? save_adapters(*adapters, model, s.folder) : std::string();
      if (!saved) return std::move(saved).error();
      last_line += *saved;
    }
    if (rank.leads()) support::describe_end(program, s.diagnose, *session);
    if (first) ending = *std::move(done);
    rank.dog.tell("waited for the other ranks", true);
    return rank.control.barrier();  // no rank leaves while another still needs it
  };
  const auto done = support::run_ranks(team, s.mesh, run_id_of(identity, team, begun), options, work);
  sink.clear();
  auto closed = log.close();
  if (done && support::failed(program, closed, code)) return code;
  if (!s.watch.profile.empty() && leads)
    if (auto r = support::write_report(s.watch.profile, text_of(profile)); done && support::failed(program, r, code)) return code;
  if (const std::string path = plot_path(s); leads && !path.empty() && !sink.curves.train.empty()) {
    auto drawn = isotope::io::write_file(path, loss_plot(sink.curves));
    if (done && support::failed(program, drawn, code)) return code;
    if (drawn) sink.print("plot " + path);
  }
  if (leads && !s.output.report.empty()) {
    auto written = write_run_page(s, sink.curves.title, log);
    if (done && support::failed(program, written, code)) return code;
    if (written) sink.print("page " + s.output.report);
  }
  if (support::failed(program, done, code)) return code;
  if (leads && !last_line.empty()) {
    if (auto r = save_tokenizer(s, data); support::failed(program, r, code)) return code;
    support::print(last_line);
  }
  return ending && ending->why == isotope::train::ending::interrupted ? support::interrupted : support::success;
}

}  // namespace train_program
