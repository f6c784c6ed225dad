#pragma once
/// A decoder of any size on the device that the program was compiled for, planned when the program runs: a text's vocabulary is known then.
#include "plan_reports.hpp"
#include "run_options.hpp"
#include "trained_model.hpp"

#include <isotope/generate/generator.hpp>
#include <isotope/isotope.hpp>
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
};

/// Plans first, so that a model that does not fit is refused before anything is allocated or opened. Reports are on the training plan.
///
/// @error over_budget, invalid_model, write_failed for a report, and as the device reports
inline isotope::result<session> open_training(const trained_model& model, const training_shape& shape, const run_options& run) {
  const trained_loss loss{model, int(shape.batch), int(shape.length)};
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
