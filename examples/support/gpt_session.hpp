#pragma once
/// A decoder of any size on the device that the program was compiled for, planned when the program runs: a text's vocabulary is known then.
#include "plan_reports.hpp"
#include "run_options.hpp"
#include "trained_model.hpp"

#include <isotope/generate/generator.hpp>
#include <isotope/isotope.hpp>
#include <isotope/plan/flops.hpp>
#include <isotope/selected.hpp>

#include <cstdint>
#include <utility>

namespace support {

using target = isotope::selected;
using session = isotope::device<target>::session;

/// How a model is to be trained, as far as the plan depends on it.
struct training_shape {
  std::int64_t batch = 1, length = 1;
  bool accumulate = false;                                                 // several micro-batches per step
  isotope::update_policy update = isotope::update_policy::after_backward;  // within the backward pass nothing is clipped
  isotope::recompute_policy recompute{};
  isotope::head_policy head{};
  isotope::device_mesh mesh{};  // of devices that train together, each of which has `batch` rows
  int zero = 0;
};

/// The plans of a run: that of a step, and that which validates.
struct training_plans {
  isotope::dynamic_plan training, evaluation;
};

inline isotope::training_options options_of(const training_shape& shape, const run_options& run) {
  const bool within = shape.update == isotope::update_policy::within_backward;
  return {.clip = within ? isotope::clipping::none : isotope::clipping::global_norm,
          .update = shape.update,
          .accumulate = shape.accumulate,
          .recompute = shape.recompute,
          .head = shape.head,
          .decompose_all = run.diagnose.decompose_all(),
          .mesh = shape.mesh,
          .zero = shape.zero};
}

/// Plans, and writes the reports on the trace.
///
/// @param budget  bytes that each plan may need
/// @error over_budget, invalid_model, write_failed for a report
inline isotope::result<training_plans> plan_run(const trained_model& model, const training_shape& shape, const run_options& run,
                                                std::int64_t budget) {
  const trained_loss loss{model, int(shape.batch), int(shape.length)};
  const isotope::training_options options = options_of(shape, run);
  auto plan = isotope::plan_training<target>(loss, options, budget);
  if (!plan) return std::move(plan).error();
  auto evaluation =
      isotope::plan_inference<target>(loss, budget, true, options.decompose_all, nullptr, options.group, false, false, options);
  if (!evaluation) return std::move(evaluation).error();
  if (auto r = write_trace_reports<target>(run.diagnose, [&] { return isotope::traced_training<target>(loss, options); }); !r)
    return r.error();
  return training_plans{*std::move(plan), *std::move(evaluation)};
}

/// The operations of a step with so many micro-batches that recomputes nothing. @error as plan_training
inline isotope::result<std::int64_t> model_flops(const trained_model& model, training_shape shape, const run_options& run,
                                                 std::int64_t micro_batches) {
  shape.recompute = isotope::recompute::none;
  const auto plan = isotope::plan_training<target>(trained_loss{model, int(shape.batch), int(shape.length)}, options_of(shape, run));
  if (!plan) return plan.error();
  return isotope::flops_of(*plan, micro_batches);
}

/// Loads the plans of a run onto a device. Reports are on the training plan. @error as the device reports, write_failed for a report
template <class Device> isotope::result<session> load_run(const Device& device, training_plans plans, const run_options& run) {
  auto loaded = device.load(std::move(plans.training), std::move(plans.evaluation));
  if (!loaded) return loaded;
  describe_load(run.program, run.diagnose, device, *loaded);
  if (auto r = write_plan_reports(run.program, run.diagnose, *loaded); !r) return r.error();
  return loaded;
}

/// Plans first, so that a model that does not fit is refused before anything is allocated or opened.
///
/// @param about  gets what the device is; may be null
/// @error as plan_run and load_run
inline isotope::result<session> open_training(const trained_model& model, const training_shape& shape, const run_options& run,
                                              isotope::device_info* about = nullptr) {
  auto plans = plan_run(model, shape, run, run.budget());
  if (!plans) return std::move(plans).error();
  auto device = isotope::device<target>::open(run.device<target::backend>());
  if (!device) return std::move(device).error();
  if (about != nullptr) *about = device->info();
  return load_run(*device, *std::move(plans), run);
}

/// Plans first, as open_training does. Reports on traces are on the plan that decodes.
///
/// @error as open_training
inline isotope::result<isotope::generator<target>> open_generator(const isotope::model::gpt& size, const run_options& run) {
  const isotope::generator_options options{.budget = run.budget(),
                                           .decompose_all = run.diagnose.decompose_all(),
                                           .stored = isotope::weights::named(run.diagnose.stored_weights()),
                                           .a8 = run.diagnose.a8};
  auto plans = isotope::generator<target>::plans(size, options);
  if (!plans) return std::move(plans).error();
  const auto trace = [&] {
    const auto model = isotope::generator<target>::decoding(size, options);
    return isotope::traced_inference<target>(model, true, options.decompose_all, options.stored, options.a8);
  };
  if (auto r = write_trace_reports<target>(run.diagnose, trace); !r) return r.error();
  auto device = isotope::device<target>::open(run.device<target::backend>());
  if (!device) return std::move(device).error();
  auto opened = isotope::generator<target>::open(*device, size, options, *std::move(plans));
  if (opened) describe_load(run.program, run.diagnose, *device, opened->loaded());
  return opened;
}

}  // namespace support
