#pragma once
/// A GPT of any size on the device that the program was compiled for, planned when the program runs: a text's vocabulary is known then.
#include "plan_reports.hpp"
#include "run_options.hpp"

#include <isotope/isotope.hpp>
#include <isotope/selected.hpp>
#include <isotope/train/session.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace support {

using target = isotope::selected;
using session = isotope::device<target>::session;

/// How a GPT is to be trained, as far as the plan depends on it.
struct training_shape {
  std::int64_t batch = 1, length = 1;
  bool accumulate = false;                                                 // several micro-batches per step
  isotope::update_policy update = isotope::update_policy::after_backward;  // within the backward pass nothing is clipped
  isotope::recompute_policy recompute{};
  isotope::head_policy head{};
};

/// Plans first, so that a model that does not fit is refused before anything is allocated or opened. Reports are on the training plan.
///
/// @error over_budget, invalid_model, write_failed for a report, and as the device reports
inline isotope::result<session> open_gpt(const isotope::model::gpt& size, const training_shape& shape, const run_options& run) {
  const isotope::model::gpt_loss_of loss{size, int(shape.batch), int(shape.length)};
  const bool within = shape.update == isotope::update_policy::within_backward;
  const isotope::training_options options{.clip = within ? isotope::clipping::none : isotope::clipping::global_norm,
                                          .update = shape.update,
                                          .accumulate = shape.accumulate,
                                          .recompute = shape.recompute,
                                          .head = shape.head,
                                          .decompose_all = run.diagnose.decompose_all()};
  auto plan = isotope::plan_training<target>(loss, options, run.budget());
  if (!plan) return std::move(plan).error();
  auto evaluation = isotope::plan_inference<target>(loss, run.budget(), true, options.decompose_all, nullptr, options.group);
  if (!evaluation) return std::move(evaluation).error();
  if (auto r = write_trace_reports<target>(run.diagnose, [&] { return isotope::traced_training<target>(loss, options); }); !r)
    return r.error();
  auto device = isotope::device<target>::open(run.device<target::backend>());
  if (!device) return std::move(device).error();
  auto loaded = device->load(*std::move(plan), *std::move(evaluation));
  if (!loaded) return loaded;
  describe_load(run.program, run.diagnose, *device, *loaded);
  if (auto r = write_plan_reports(run.program, run.diagnose, *loaded); !r) return r.error();
  return loaded;
}

/// Next-token logits of one window at a time.
class gpt_reader {
 public:
  /// @error as open_gpt
  static isotope::result<gpt_reader> open(const isotope::model::gpt& size, const run_options& run) {
    const isotope::model::gpt_logits_of logits{size, 1, size.context};
    const bool decompose_all = run.diagnose.decompose_all();
    const isotope::weight_storage stored = run.diagnose.f16_weights ? isotope::weights::f16 : nullptr;
    auto plan = isotope::plan_inference<target>(logits, run.budget(), true, decompose_all, stored);
    if (!plan) return std::move(plan).error();
    const auto trace = [&] { return isotope::traced_inference<target>(logits, true, decompose_all, stored); };
    if (auto r = write_trace_reports<target>(run.diagnose, trace); !r) return r.error();
    auto device = isotope::device<target>::open(run.device<target::backend>());
    if (!device) return std::move(device).error();
    auto loaded = device->load(*std::move(plan));
    if (!loaded) return std::move(loaded).error();
    describe_load(run.program, run.diagnose, *device, *loaded);
    return gpt_reader(*std::move(loaded), size);
  }

  auto parameters() const { return session_.parameters(); }
  isotope::result<void> write(isotope::tensor_kind kind, std::size_t slot, std::span<const float> in) {
    return session_.write(kind, slot, in);
  }

  /// The reports on the plan, once it has its parameters: kernels may depend on them. @error as write_report
  isotope::result<void> write_reports(const run_options& run) { return write_plan_reports(run.program, run.diagnose, session_); }
  void describe_end(const run_options& run) { support::describe_end(run.program, run.diagnose, session_); }

  /// Logits (V) after the last of 1 to `context` tokens. The tail of the window is filled up; a causal model's earlier rows do not see it.
  isotope::result<std::span<const float>> logits(std::span<const std::int32_t> tokens) {
    auto window = session_.input<std::int32_t>("tokens");
    if (!window) return std::move(window).error();
    std::fill(std::copy(tokens.begin(), tokens.end(), window->begin()), window->end(), 0);
    session_.run({}, isotope::phase_always);
    if (auto r = isotope::train::status_of(session_); !r) return r.error();
    auto rows = session_.output<target::precision::storage>("output");  // (1,S,V)
    if (!rows) return std::move(rows).error();
    const auto row = rows->subspan((tokens.size() - 1) * logits_.size(), logits_.size());
    std::transform(row.begin(), row.end(), logits_.begin(), [](auto x) { return float(x); });
    return std::span<const float>(logits_);
  }

 private:
  gpt_reader(session loaded, const isotope::model::gpt& size) : session_(std::move(loaded)), logits_(std::size_t(size.vocab)) {}

  session session_;
  std::vector<float> logits_;
};

}  // namespace support
