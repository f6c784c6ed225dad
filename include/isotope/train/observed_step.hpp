#pragma once
/// Runs a training step that pauses after each step of the plan, so that an observer can read what it wrote: the same bits as session::step, slower.
#include <isotope/core/error.hpp>
#include <isotope/core/step.hpp>
#include <isotope/plan/plan.hpp>
#include <isotope/train/batch.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace isotope::train {

template <class S>
concept HasPlan = requires(const S& s) {
  { s.plan() } -> std::convertible_to<plan_view>;
};
template <class S>
concept CanPut = requires(S& s, const batch& b) {
  { s.put(b) } -> std::same_as<result<void>>;
};
template <class S>
concept CanObserve = requires(S& s, const step_scalars& x, void (*after)(std::size_t), std::uint8_t active) {
  { s.observe(x, after, active) } -> std::convertible_to<step_report>;
};
template <class S>
concept HasNumbers = requires(const S& s, const operand& o) {
  { s.numbers(o) } -> std::same_as<result<std::vector<float>>>;
};
/// `profile(scalars, phases)` runs the plan once with the device's own clock around each launch.
template <class S>
concept CanProfile = requires(S& s, const step_scalars& x, std::uint8_t active) {
  { s.profile(x, active)->report } -> std::convertible_to<step_report>;
};
/// A session whose plan can be run a step at a time, and whose results can be read.
template <class S>
concept ObservableSession = HasPlan<S> && CanPut<S> && CanObserve<S> && HasNumbers<S>;

/// Calls run(micro-batch, its scalars, its phases) for each micro-batch as session::step would run them, and returns the report of the last one with
/// the mean loss. @error as put
template <CanPut S, class Run>
result<step_report> each_micro_batch(S& session, std::span<const batch> batches, const step_scalars& given, const Run& run) {
  step_report report;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    step_scalars x = given;
    x.gradient_scale = given.gradient_scale / float(batches.size());
    x.counter = given.counter + i;
    if (auto r = session.put(batches[i]); !r) return r.error();
    const bool last = i + 1 == batches.size();
    result<step_report> r = run(i, x, std::uint8_t((i == 0 ? phase_first : phase_later) | (last ? phase_last : 0)));
    if (!r) return r;
    report = *r;
  }
  report.loss /= double(batches.size());
  return report;
}

/// Runs one optimizer step and calls after(micro-batch, step of the plan) after each step. @error as put
template <ObservableSession S, class After>
result<step_report> observed_step(S& session, std::span<const batch> batches, const step_scalars& given, const After& after) {
  return each_micro_batch(session, batches, given, [&](std::size_t i, const step_scalars& x, std::uint8_t active) -> result<step_report> {
    return session.observe(x, [&](std::size_t k) { after(i, k); }, active);
  });
}

}  // namespace isotope::train
