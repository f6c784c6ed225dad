#pragma once
/// What the calibration of --calibration says of a step, and how the first steps compare.
#include "../support/calibration_key.hpp"
#include "../support/gpt_session.hpp"
#include "settings.hpp"

#include <isotope/calibrate/calibration_file.hpp>
#include <isotope/calibrate/estimate.hpp>
#include <isotope/train/decimal.hpp>
#include <isotope/train/event.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace train_program {

struct prediction {
  isotope::time_estimate step;  // of a step with its micro-batches
  std::int64_t flops = 0;       // of such a step, without those of what is recomputed
  double matrix_rate = 0;       // operations per second of a large product
  std::vector<double> usec;     // of each step of the plan

  /// The model's operations in this time as a share of the matrix rate: model FLOP utilisation (Chowdhery et al. 2022, arXiv:2204.02311, appendix B).
  double share(double seconds) const { return double(flops) / seconds / matrix_rate; }

  std::string line() const {
    using isotope::train::fixed, isotope::train::scaled;
    const double seconds = step.seconds();
    return "predicted " + fixed(1e3 * seconds, 2) + " ms a step, most of it " + std::string(name_of(step.limit())) + ": " +
           scaled(double(flops)) + " operations, " + fixed(100 * share(seconds), 1) + " % of the " + scaled(matrix_rate) +
           " a second measured for large products (MFU)";
  }
  /// Fields of the event `run`, each with a comma before it.
  std::string fields() const {
    using isotope::train::shortest;
    return R"(,"predicted_ms":)" + shortest(1e3 * step.seconds()) + R"(,"flops":)" + std::to_string(flops) + R"(,"matrix_rate":)" +
           shortest(matrix_rate);
  }
};

/// Predicts from the figures that `isotope-info calibrate FOLDER` wrote for this device and number format.
/// @error not_found, bad_format: no figures of this device and library, or not all; as plan_training
inline isotope::result<prediction> predict(const settings& s, const support::trained_model& model, const support::training_shape& shape,
                                           const support::run_options& run, const isotope::device_info& device,
                                           const isotope::plan_view& plan) {
  using namespace isotope;
  const std::string path = calibration_path(s.watch.calibration, device);
  const auto read = read_calibrations(path, support::calibration_key(device));
  const std::string fix = "measure it: isotope-info calibrate " + s.watch.calibration + ", with all threads of a processor";
  if (!read.why.empty()) return fail(errc::bad_format, read.why, path, fix);
  const std::string_view format = name_of(selected::precision::type);
  const calibration* const c = read.find(format);
  if (c == nullptr) return fail(errc::not_found, "has no figures of this device in " + std::string(format), path, fix);
  if (c->weakest() == provenance::none) return fail(errc::bad_format, "has figures that nobody measured", path, fix);
  prediction p;
  p.step = estimate(plan, *c, {.micro_batches = s.training.accumulate});
  p.matrix_rate = (*c)[quantity::product_large].value;
  for (const step& x : plan.steps) p.usec.push_back(1e6 * estimate(plan, x, *c).seconds());
  auto flops = support::model_flops(model, shape, run, s.training.accumulate);
  if (!flops) return std::move(flops).error();
  p.flops = *flops;
  return p;
}

/// Compares the first steps of this process with the prediction, in one line.
class step_comparison {
 public:
  explicit step_comparison(prediction p) : predicted_(std::move(p)) {}

  /// Returns the line after the last of the compared steps, else nothing. The first step of a process is not counted.
  std::string take(const isotope::train::step_event& e) {
    if (first_ < 0) first_ = e.step;
    else if (!told_) ms_.push_back(e.ms);
    return ms_.size() == compared ? tell() : std::string();
  }
  /// Returns the line of a run with fewer steps, if it has several.
  std::string end() { return ms_.empty() ? std::string() : tell(); }

 private:
  static constexpr std::size_t compared = 20;
  prediction predicted_;
  std::vector<double> ms_;
  std::int64_t first_ = -1;
  bool told_ = false;

  std::string tell() {
    if (std::exchange(told_, true)) return {};
    using isotope::train::fixed;
    const auto middle = ms_.begin() + std::ptrdiff_t(ms_.size() / 2);
    std::nth_element(ms_.begin(), middle, ms_.end());
    return "measured " + fixed(*middle, 2) + " ms a step, the median of steps " + std::to_string(first_ + 1) + " to " +
           std::to_string(first_ + std::int64_t(ms_.size())) + ": " + fixed(*middle / 1e3 / predicted_.step.seconds(), 2) +
           " x predicted, " + fixed(100 * predicted_.share(*middle / 1e3), 1) + " % MFU";
  }
};

}  // namespace train_program
