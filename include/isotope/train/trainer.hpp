#pragma once
/// The training loop: steps, validation, checkpoints, early stopping, interruption. It prints nothing, reads no clock and opens no file: time, data,
/// storage and the listener are passed in.
#include <isotope/core/error.hpp>
#include <isotope/train/decimal.hpp>
#include <isotope/train/event.hpp>
#include <isotope/train/profile.hpp>
#include <isotope/train/run_ahead.hpp>
#include <isotope/train/session.hpp>
#include <isotope/train/state.hpp>
#include <isotope/train/validation.hpp>

#include <atomic>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace isotope::train {

/// What to do if a loss or gradient norm is not finite. The session has updated nothing then.
enum class non_finite : std::uint8_t {
  stop,  // the run fails, naming the step; no checkpoint is written, so the last good one stays the last
  skip,  // continues with the next batch, at most `skip_limit` times in a row
};

struct trainer_options {
  std::int64_t steps = 1000;          // in total, including those before a resume
  std::int64_t batch = 1;             // rows B of one micro-batch
  std::int64_t length = 1;            // columns S
  std::int64_t accumulate = 1;        // micro-batches per step
  std::int64_t eval_every = 0;        // 0: at the end only
  std::int64_t patience = 0;          // evaluations without a better loss; 0: never stop early
  std::int64_t checkpoint_every = 0;  // 0: at the end only
  std::int64_t stop_after = 0;        // finishes this step, saves and ends; 0: no such step
  non_finite on_non_finite = non_finite::stop;
  std::int64_t skip_limit = 10;
  step_scalars scalars;  // seed, betas, epsilon, decay, clip, momentum; the loop fills in counter, step and rate
};

/// `data.training_batch(seed, k, length, tokens, targets)` writes micro-batch k: a pure function of seed and k, so that the step count alone is the
/// position in the data. Data that is read from files has a member `status()`, like sessions: its first failure, after which batches are
/// blank and the run ends.
template <class D>
concept HasTrainingBatches =
    requires(const D& d, std::uint64_t seed, std::int64_t k, std::span<std::int32_t> out) { d.training_batch(seed, k, k, out, out); };
template <class D>
concept TrainingData = HasTrainingBatches<D> && ValidationData<D>;

/// `store.save(session, state, best)` returns the path once the checkpoint is safely kept (empty: nothing is kept). `best`: the state has just been
/// found the best and must be kept as such, whatever comes later.
template <class C, class S>
concept CheckpointStore = requires(C& c, S& s, const run_state& r) {
  { c.save(s, r, true) } -> std::same_as<result<std::string>>;
};

/// A store that keeps nothing.
struct no_checkpoints {
  template <class S> result<std::string> save(S&, const run_state&, bool) { return std::string(); }
};

/// Returns seconds since any fixed moment.
template <class F>
concept Clock = requires(F& now) {
  { now() } -> std::convertible_to<double>;
};
/// Returns the learning rate for a number of finished steps.
template <class F>
concept RateFunction = requires(const F& f, std::int64_t t) {
  { f(t) } -> std::convertible_to<double>;
};

/// A session that submits steps is kept busy: steps up to the next evaluation or checkpoint are submitted before earlier ones have ended, with the same numbers
/// at the same steps. Not where a skipped step changes what the next one computes, nor with several micro-batches a step.
/// `Profile` is `unprofiled`, which costs nothing, or a loop_profile that outlives the trainer.
template <TrainingSession Session, TrainingData Data, class Store, EventSink Sink, RateFunction Rate, Clock Now,
          class Profile = const unprofiled>
requires CheckpointStore<Store, Session> class trainer {
 public:
  trainer(Session& session, const Data& data, Store& store, Sink& sink, Rate learning_rate, Now now, const std::atomic<bool>& interrupted,
          trainer_options options, run_state state = {}, Profile& profile = nothing_measured)
      : session_(session),
        data_(data),
        store_(store),
        sink_(sink),
        rate_(std::move(learning_rate)),
        now_(std::move(now)),
        interrupted_(interrupted),
        options_(options),
        state_(state),
        profile_(profile),
        saved_at_(state.step > 0 ? state.step : -1),
        ahead_(frames) {
    const auto elems = std::size_t(options.batch * options.length);
    tokens_.resize(elems * std::size_t(options.accumulate));
    targets_.resize(tokens_.size());
    for (std::size_t i = 0; i < std::size_t(options.accumulate); ++i)
      micro_batches_.push_back({std::span<const std::int32_t>(tokens_).subspan(i * elems, elems),
                                std::span<const std::int32_t>(targets_).subspan(i * elems, elems)});
  }

  /// Trains until the last step, `stop_after`, an interruption or exhausted patience. The end is evaluated only where an uninterrupted run would be,
  /// so that a stopped and resumed run makes the same decisions. If the session's device fails, the run ends before the step counts, and the
  /// checkpoints written so far remain.
  /// @error non_finite (the step and what to do), device_lost, timeout, or whatever else the store, session or data report
  result<done_event> run() {
    const double start = now_();
    const std::int64_t last = options_.stop_after > 0 && options_.stop_after < options_.steps ? options_.stop_after : options_.steps;
    while (state_.step < last && !interrupted_.load(std::memory_order_relaxed) && !state_.best.exhausted(options_.patience)) {
      if (auto r = steps(last); !r) return std::move(r).error();
      const bool at_end = state_.step == options_.steps;
      if (at_end || due(options_.eval_every))
        if (auto r = evaluate(); !r) return std::move(r).error();
      if (at_end || due(options_.checkpoint_every))
        if (auto r = save(false); !r) return std::move(r).error();
    }
    if (state_.step != saved_at_ && state_.step > 0)
      if (auto r = save(false); !r) return std::move(r).error();

    done_event done;
    done.steps = state_.step;
    done.why = state_.step >= options_.steps                  ? ending::finished
               : state_.best.exhausted(options_.patience)     ? ending::early
               : interrupted_.load(std::memory_order_relaxed) ? ending::interrupted
                                                              : ending::stopped;
    done.val_loss = state_.val_loss;
    if (std::isfinite(state_.best.value)) done.best_val_loss = state_.best.value;
    done.seconds = now_() - start;
    done.planned_bytes = session_.planned_bytes();
    done.measured_bytes = session_.measured_bytes();
    sink_(done);
    return done;
  }

  const run_state& state() const { return state_; }

 private:
  template <class F> auto timed(loop_phase phase, F&& f) {
    if constexpr (Profile::on) {
      const double before = now_();
      auto r = f();
      profile_.add(phase, now_() - before);
      return r;
    } else {
      return f();
    }
  }
  bool due(std::int64_t every) const { return every > 0 && state_.step % every == 0; }

  /// Runs one step, or steps ahead.
  result<void> steps(std::int64_t last) {
    if constexpr (submits)
      if (options_.accumulate == 1 && options_.on_non_finite == non_finite::stop) return steps_ahead(last);
    return one_step();
  }
  /// The scalars of the step after `finished` ones.
  step_scalars scalars_after(std::int64_t finished) const {
    step_scalars scalars = options_.scalars;
    scalars.counter = std::uint64_t(finished) * std::uint64_t(options_.accumulate);
    scalars.optimizer_step =
        finished - state_.skipped + 1;  // counts updates, not attempted steps, because the bias correction counts moments
    scalars.learning_rate = float(rate_(finished));
    return scalars;
  }

  result<void> one_step() {
    const double before = now_();
    const step_scalars scalars = scalars_after(state_.step);
    const auto micro = std::uint64_t(options_.accumulate);
    const std::uint64_t first = scalars.counter;
    const std::size_t elems = std::size_t(options_.batch * options_.length);
    timed(loop_phase::data, [&] {
      for (std::size_t i = 0; i < micro; ++i)
        data_.training_batch(scalars.seed, std::int64_t(first + i), options_.length, std::span(tokens_).subspan(i * elems, elems),
                             std::span(targets_).subspan(i * elems, elems));
      return true;
    });
    if (auto r = status_of(data_); !r) return r;
    const step_report report = timed(loop_phase::step, [&] { return session_.step(micro_batches_, scalars); });
    if (auto r = alive(state_.step + 1); !r) return r;
    return ended(report, double(scalars.learning_rate), now_() - before);
  }
  /// Counts a step that ended, and reports it.
  result<void> ended(const step_report& report, double learning_rate, double seconds) {
    ++state_.step;
    const bool bad = report.skipped || !std::isfinite(report.loss) || !std::isfinite(report.grad_norm);
    state_.skipped += bad;
    state_.skipped_in_a_row = bad ? state_.skipped_in_a_row + 1 : 0;
    const double tokens = double(options_.batch * options_.length * options_.accumulate);
    sink_(step_event{state_.step, options_.steps, report.loss, report.grad_norm, learning_rate, seconds * 1000,
                     seconds > 0 ? tokens / seconds : 0.0, bad});
    if (bad && (options_.on_non_finite == non_finite::stop || state_.skipped_in_a_row > options_.skip_limit)) return not_finite(report);
    return {};
  }

  /// Submits steps up to one after which the run ends, evaluates or saves, and waits for them. An interruption lets those in flight end. A step's time is the mean
  /// of those whose end was waited for together.
  result<void> steps_ahead(std::int64_t last) {
    std::int64_t stop = last;
    for (const std::int64_t every : {options_.eval_every, options_.checkpoint_every})
      if (every > 0) stop = std::min(stop, (state_.step / every + 1) * every);
    std::int64_t begun = state_.step;
    flying_.clear();
    for (double before = now_(); state_.step < stop;) {
      while (begun < stop && flying_.size() < ahead_.room() && !interrupted_.load(std::memory_order_relaxed)) {
        const step_scalars scalars = scalars_after(begun);
        if (!fill_next(scalars)) break;
        flying_.push_back({timed(loop_phase::step, [&] { return session_.submit(scalars); }), double(scalars.learning_rate)});
        ++begun;
      }
      if (flying_.empty()) return interrupted_.load(std::memory_order_relaxed) ? result<void>() : one_step();
      const std::size_t count =
          begun < stop && !interrupted_.load(std::memory_order_relaxed) ? std::min(ahead_.half(), flying_.size()) : flying_.size();
      timed(loop_phase::wait, [&] { return session_.collect(flying_[count - 1].pending); });  // then those before it have ended, too
      const double now = now_(), seconds = (now - std::exchange(before, now)) / double(count);
      ahead_.took(seconds);
      for (std::size_t i = 0; i < count; ++i) {
        const step_report report = session_.collect(flying_[i].pending);
        if (report.skipped)
          if (auto r = alive(state_.step + 1); !r) return r;
        if (auto r = ended(report, flying_[i].learning_rate, seconds); !r) return r;
      }
      flying_.erase(flying_.begin(), flying_.begin() + std::ptrdiff_t(count));
    }
    return {};
  }
  /// Writes the batch of a step that is about to be submitted. False if it cannot be: the session's device or the data failed, or the plan
  /// has other inputs.
  bool fill_next(const step_scalars& scalars) {
    const auto elems = std::size_t(options_.batch * options_.length);
    auto tokens = session_.template next_input<std::int32_t>(batch::tokens_label);
    auto targets = session_.template next_input<std::int32_t>(batch::targets_label);
    if (!tokens || !targets || tokens->size() != elems || targets->size() != elems) return false;
    return timed(loop_phase::data, [&] {
      data_.training_batch(scalars.seed, std::int64_t(scalars.counter), options_.length, *tokens, *targets);
      return status_of(data_).ok();
    });
  }

  /// Returns the session's failure, if any, with the step at which it occurred.
  result<void> alive(std::int64_t step) const {
    auto r = status_of(session_);
    if (r) return {};
    failure f = std::move(r).error();
    f.where = "step " + std::to_string(step) + (f.where.empty() ? "" : ", " + f.where);
    if (saved_at_ > 0) f.what += "; the checkpoint of step " + std::to_string(saved_at_) + " is the last one";
    return f;
  }

  failure not_finite(const step_report& report) const {
    const std::int64_t first_bad = state_.step - state_.skipped_in_a_row + 1;
    std::string what = "loss " + shortest(report.loss) + ", gradient norm " + shortest(report.grad_norm);
    if (state_.skipped_in_a_row > 1) what += " after " + std::to_string(state_.skipped_in_a_row) + " skipped steps in a row";
    if (saved_at_ > 0) what += "; the checkpoint of step " + std::to_string(saved_at_) + " is the last good one";
    return fail(errc::non_finite, std::move(what), "step " + std::to_string(first_bad),
                "lower the learning rate, lengthen the warm-up or clip the gradient");
  }

  result<void> evaluate() {
    const auto loss = timed(loop_phase::evaluate, [&] { return validation_loss(session_, data_, options_.batch, options_.length); });
    if (!loss) return {};
    if (auto r = alive(state_.step); !r) return r;
    if (auto r = status_of(data_); !r) return r;
    state_.val_loss = loss;
    state_.evaluated_at = state_.step;
    const bool best = state_.best.take(*loss, state_.step);
    sink_(eval_event{state_.step, *loss, best});
    return best ? save(true) : result<void>();
  }

  result<void> save(bool best) {
    auto path = timed(loop_phase::save, [&] { return store_.save(session_, state_, best); });
    if (!path) return std::move(path).error();
    if (!best) saved_at_ = state_.step;
    if (!path->empty()) sink_(checkpoint_event{state_.step, *path, best});
    return {};
  }

  static constexpr std::size_t frames = [] {
    if constexpr (SubmitsSteps<Session>) return std::size_t(Session::frames);
    else return std::size_t(1);
  }();
  static constexpr bool submits = frames > 1;
  Session& session_;
  const Data& data_;
  Store& store_;
  Sink& sink_;
  Rate rate_;
  Now now_;
  const std::atomic<bool>& interrupted_;
  trainer_options options_;
  run_state state_;
  Profile& profile_;
  std::int64_t saved_at_;                       // step of the run's latest checkpoint; -1: none
  std::vector<std::int32_t> tokens_, targets_;  // (micro-batches,B,S)
  std::vector<batch> micro_batches_;
  struct flying_step {
    typename submitted_by<Session>::type pending;
    double learning_rate = 0;
  };
  std::vector<flying_step> flying_;  // submitted, in this order
  run_ahead ahead_;
};

}  // namespace isotope::train
