#pragma once
/// A session without a model, for tests of the training loop. It has two tensors, and its losses come from a script or from simple arithmetic.
#include <isotope/core/shape.hpp>
#include <isotope/train/session.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fake {

struct slot {
  std::string path;
  isotope::shape dims;
};

/// Parameters change by a function of every token and every scalar of the step, so that any error in data order, counters or restored
/// state changes the bits. `losses(step)` and `val_losses(evaluation)` replace the reported losses.
struct session {
  std::vector<slot> slots{{"a.weight", {3, 1}}, {"b.bias", {2}}};
  std::vector<std::vector<float>> values[4] = {{{0, 0, 0}, {0, 0}}, {{0, 0, 0}, {0, 0}}, {{0, 0, 0}, {0, 0}}, {{0, 0, 0}, {0, 0}}};
  std::function<double(std::int64_t)> losses;
  std::function<double(std::int64_t)> val_losses;
  std::vector<isotope::step_scalars> seen;
  std::int64_t steps = 0, evaluations = 0;

  const std::vector<slot>& parameters() const { return slots; }
  void initialize(std::uint64_t seed) {
    for (auto& kind : values)
      for (auto& tensor : kind) tensor.assign(tensor.size(), 0.0f);
    for (auto& tensor : values[0])
      for (float& v : tensor) v = float(seed) * 0.25f + 1;
  }
  isotope::step_report step(std::span<const isotope::batch> micro, const isotope::step_scalars& s) {
    seen.push_back(s);
    ++steps;
    const double scripted = losses ? losses(steps) : 1.0 / double(steps);
    if (!std::isfinite(scripted)) return {scripted, scripted, true};
    for (std::size_t t = 0; t < slots.size(); ++t)
      for (std::size_t i = 0; i < values[0][t].size(); ++i) {
        float g = 0;
        for (const isotope::batch& b : micro)
          for (std::size_t j = 0; j < b.tokens.size(); ++j)
            g += float((b.tokens[j] * 7 + b.targets[j] * 3 + std::int32_t(i + j)) % 11) * s.gradient_scale / float(micro.size());
        float &p = values[0][t][i], &m = values[2][t][i], &v = values[3][t][i];
        m = float(s.beta1) * m + float(1 - s.beta1) * g;
        v = float(s.beta2) * v + float(1 - s.beta2) * g * g;
        p -= s.learning_rate * m / (std::sqrt(v) + 0.1f) + float(s.counter % 5) * 1e-3f + float(s.optimizer_step) * 1e-4f;
      }
    return {scripted, 0.5, false};
  }
  double evaluate(const isotope::batch&) {
    ++evaluations;
    return val_losses ? val_losses(evaluations) : double(values[0][0][0]);
  }
  isotope::result<void> read(isotope::tensor_kind kind, std::size_t i, std::span<float> out) {
    const auto& from = values[int(kind)][i];
    for (std::size_t j = 0; j < out.size(); ++j) out[j] = from[j];
    return {};
  }
  isotope::result<void> write(isotope::tensor_kind kind, std::size_t i, std::span<const float> in) {
    values[int(kind)][i].assign(in.begin(), in.end());
    return {};
  }
  std::int64_t planned_bytes() const { return 1000; }
  std::int64_t measured_bytes() const { return 1024; }
};

static_assert(isotope::train::TrainingSession<session>);
static_assert(!isotope::train::HasStatus<session>);

/// A `session` whose device fails from step `lost_step` or validation batch `lost_evaluation` on.
struct mortal_session : session {
  std::int64_t lost_step = 0, lost_evaluation = 0;  // 0: never
  isotope::errc how = isotope::errc::device_lost;

  bool lost() const { return (lost_step > 0 && steps >= lost_step) || (lost_evaluation > 0 && evaluations >= lost_evaluation); }
  isotope::step_report step(std::span<const isotope::batch> micro, const isotope::step_scalars& s) {
    const auto report = session::step(micro, s);
    return lost() ? isotope::step_report{std::nan(""), std::nan(""), true} : report;
  }
  double evaluate(const isotope::batch& b) {
    const double loss = session::evaluate(b);
    return lost() ? std::nan("") : loss;
  }
  isotope::result<void> status() const {
    if (lost()) return isotope::fail(how, "the device is gone", "fake", "open it again");
    return {};
  }
};

static_assert(isotope::train::TrainingSession<mortal_session> && isotope::train::HasStatus<mortal_session>);

/// A session whose steps are submitted. It notes how many were in flight at most, and whether an evaluation met one.
template <class Base> struct submitting : Base {
  static constexpr std::size_t frames = 4, elems = 4;  // of a batch
  struct pending {
    std::size_t number = 0;  // counts from 1; 0: nothing was submitted
  };
  std::vector<std::int32_t> tokens = std::vector<std::int32_t>(elems), targets = tokens;
  std::vector<isotope::step_report> reports;
  std::vector<bool> collected;
  std::size_t flying = 0, most = 0;
  bool disturbed = false;

  template <class E> isotope::result<std::span<E>> next_input(std::string_view label) {
    if (auto r = isotope::train::status_of(static_cast<const Base&>(*this)); !r) return std::move(r).error();
    return std::span<E>(label == "tokens" ? tokens : targets);
  }
  pending submit(const isotope::step_scalars& x) {
    const isotope::batch b{tokens, targets};
    reports.push_back(Base::step({&b, 1}, x));
    collected.push_back(false);
    most = std::max(most, ++flying);
    return {reports.size()};
  }
  isotope::step_report collect(const pending& p) {
    if (!collected[p.number - 1]) --flying;
    collected[p.number - 1] = true;
    return reports[p.number - 1];
  }
  double evaluate(const isotope::batch& b) {
    disturbed = disturbed || flying > 0;
    return Base::evaluate(b);
  }
};

static_assert(isotope::train::SubmitsSteps<submitting<session>> && !isotope::train::SubmitsSteps<session>);

/// Tokens 0, 1, 2, ..., so that each micro-batch is different; nine validation tokens by default.
struct data {
  std::vector<std::int32_t> split{0, 1, 2, 3, 4, 5, 6, 7, 8};
  void training_batch(std::uint64_t seed, std::int64_t k, std::int64_t, std::span<std::int32_t> tokens,
                      std::span<std::int32_t> targets) const {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = std::int32_t((seed + std::uint64_t(k) * 13 + i) % 29);
      targets[i] = std::int32_t((seed + std::uint64_t(k) * 13 + i + 1) % 29);
    }
  }
  std::int64_t validation_windows(std::int64_t length) const { return (std::int64_t(split.size()) - 1) / length; }
  std::int64_t validation_batch(std::int64_t first, std::int64_t length, std::span<std::int32_t> tokens,
                                std::span<std::int32_t> targets) const {
    const std::int64_t rows = std::min(validation_windows(length) - first, std::int64_t(tokens.size()) / length);
    for (std::int64_t i = 0; i < std::int64_t(tokens.size()); ++i) {
      const bool used = i < rows * length;
      tokens[std::size_t(i)] = used ? split[std::size_t(first * length + i)] : 0;
      targets[std::size_t(i)] = used ? split[std::size_t(first * length + i) + 1] : -1;
    }
    return rows;
  }
};

/// `data` of which micro-batches from `lost` on, and validation if `lost_validation`, cannot be read.
struct mortal_data : data {
  std::int64_t lost = 5;
  bool lost_validation = false;
  mutable bool failed = false;

  void training_batch(std::uint64_t seed, std::int64_t k, std::int64_t length, std::span<std::int32_t> tokens,
                      std::span<std::int32_t> targets) const {
    failed = failed || k >= lost;
    data::training_batch(seed, k, length, tokens, targets);
  }
  std::int64_t validation_batch(std::int64_t first, std::int64_t length, std::span<std::int32_t> tokens,
                                std::span<std::int32_t> targets) const {
    failed = failed || lost_validation;
    return data::validation_batch(first, length, tokens, targets);
  }
  isotope::result<void> status() const {
    if (failed) return isotope::fail(isotope::errc::unreadable, "read failed", "shard", "check the disk");
    return {};
  }
};

}  // namespace fake
