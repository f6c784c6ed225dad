#pragma once
/// What tests of the training loop run it with: a session without a model, a store in memory, a clock that every reading moves.
#include <train/fake_session.hpp>

#include <isotope/optim/schedule.hpp>
#include <isotope/train/trainer.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <ostream>
#include <string>
#include <type_traits>
#include <vector>

namespace train = isotope::train;

namespace trainer_test {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

struct kept {
  std::int64_t step;
  bool best;
  friend bool operator==(const kept&, const kept&) = default;
};
inline void PrintTo(const kept& k, std::ostream* out) { *out << k.step << (k.best ? "b" : ""); }

struct memory_store {
  std::vector<kept> saves;
  std::vector<std::vector<float>> values[4];
  train::run_state state;
  std::int64_t fail_at = -1;
  isotope::result<std::string> save(const fake::session& s, const train::run_state& r, bool best) {
    if (r.step == fail_at) return isotope::fail(isotope::errc::write_failed, "disk full", "report", "free some space");
    saves.push_back({r.step, best});
    if (!best) {
      state = r;
      for (int k = 0; k < 4; ++k) values[k] = s.values[k];
    }
    return "step-" + std::to_string(r.step);
  }
};

struct recorder {
  std::vector<train::step_event> steps;
  std::vector<train::eval_event> evals;
  std::vector<train::checkpoint_event> checkpoints;
  std::vector<train::done_event> ends;
  std::function<void(const train::step_event&)> on_step;
  void operator()(const train::step_event& e) {
    steps.push_back(e);
    if (on_step) on_step(e);
  }
  void operator()(const train::eval_event& e) { evals.push_back(e); }
  void operator()(const train::checkpoint_event& e) { checkpoints.push_back(e); }
  void operator()(const train::done_event& e) { ends.push_back(e); }
};

template <class Session, class Data = fake::data> struct rig_of {
  Session session;
  Data data;
  memory_store store;
  recorder sink;
  std::atomic<bool> interrupted{false};
  train::trainer_options options;
  train::run_state state;
  double time = 0, time_of_a_reading = 0.25;
  int readings = 0;  // of the clock

  rig_of() {
    options.steps = 10;
    options.batch = 2;
    options.length = 2;
    options.scalars.beta1 = 0.9;
    options.scalars.beta2 = 0.99f;
    session.initialize(3);
  }
  isotope::result<train::done_event> run() { return run(train::nothing_measured); }
  template <class Profile> isotope::result<train::done_event> run(Profile& profile) {
    const isotope::optim::warmup schedule{isotope::optim::cosine{1e-2, 1e-3, 8}, 2};
    const auto clock = [this] { return ++readings, time += time_of_a_reading; };
    train::trainer t(
        session, data, store, sink, [=](std::int64_t step) { return rate(schedule, step); }, clock, interrupted, options, state, profile);
    auto r = t.run();
    state = t.state();
    return r;
  }
};

using rig = rig_of<fake::session>;

}  // namespace trainer_test
