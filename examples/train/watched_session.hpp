#pragma once
/// A session whose steps are inspected, for [watch]. Everything else is the session's own, and so are the bits of every step.
#include "../support/clock.hpp"
#include "../support/line_file.hpp"
#include "../support/report_file.hpp"
#include "run_log.hpp"
#include "settings.hpp"

#include <isotope/core/error.hpp>
#include <isotope/train/batch.hpp>
#include <isotope/train/decimal.hpp>
#include <isotope/train/gradient_trace.hpp>
#include <isotope/train/mesh_tensors.hpp>
#include <isotope/train/node_dump.hpp>
#include <isotope/train/non_finite_node.hpp>
#include <isotope/train/plan_lines.hpp>
#include <isotope/train/session.hpp>
#include <isotope/train/step_trace.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace train_program {

template <isotope::train::ObservableSession Session> class watched_session {
 public:
  /// @param kernels  gets the times of kernels of one step; may be null
  /// @param steps    number of steps that this process will make
  /// @param predicted_usec  of each step of the plan; may be empty
  watched_session(Session& session, const watch_settings& watch, run_log* kernels, std::int64_t steps,
                  std::span<const double> predicted_usec)
      : session_(session), watch_(watch), kernels_(kernels), traced_(steps < 2 ? 1 : 2), predicted_usec_(predicted_usec) {}

  isotope::step_report step(std::span<const isotope::batch> batches, const isotope::step_scalars& x) {
    ++steps_;
    isotope::step_report r = look(batches, x);
    if (const auto number = number_of(x, batches); !watch_.gradients.empty() && number % watch_.gradients_every == 0)
      if (auto put = put_gradients(number, batches.size()); !put) keep(std::move(put).error());
    if (r.skipped && watch_.nan_trace && isotope::train::status_of(session_)) explain(batches, x);
    return r;
  }
  /// A report that could not be written ends the run as a failed device does.
  isotope::result<void> status() const {
    if (!failed_.what.empty()) return failed_;
    return isotope::train::status_of(session_);
  }

  /// Writes the gradient lines that are still in memory. @error write_failed: some line is missing
  isotope::result<void> finish() {
    if (!gradients_) return {};
    auto r = gradients_->close();
    gradients_.reset();
    return r;
  }

  auto parameters() const { return session_.parameters(); }
  auto states() const { return session_.states(); }
  void initialize(std::uint64_t seed) { session_.initialize(seed); }
  double evaluate(const isotope::batch& b) { return session_.evaluate(b); }
  isotope::result<void> read(isotope::tensor_kind kind, std::size_t slot, std::span<float> out) { return session_.read(kind, slot, out); }
  isotope::result<void> read(std::span<const isotope::tensor_read> all) { return session_.read(all); }
  bool keeps(isotope::tensor_kind kind, std::size_t slot) const { return session_.keeps(kind, slot); }
  auto groups() const requires isotope::train::HoldsParts<Session> { return session_.groups(); }
  bool divides(isotope::tensor_kind kind, std::size_t slot) const { return session_.divides(kind, slot); }
  isotope::result<void> read_own(isotope::tensor_kind kind, std::size_t slot, std::span<float> out) {
    return session_.read_own(kind, slot, out);
  }
  isotope::result<void> write(isotope::tensor_kind kind, std::size_t slot, std::span<const float> in) {
    return session_.write(kind, slot, in);
  }
  std::string algorithms() const { return isotope::train::algorithms_of(session_); }
  std::int64_t planned_bytes() const { return session_.planned_bytes(); }
  std::int64_t measured_bytes() const { return session_.measured_bytes(); }

 private:
  Session& session_;
  const watch_settings& watch_;
  run_log* kernels_;
  std::int64_t traced_, steps_ = 0;
  std::span<const double> predicted_usec_;
  isotope::failure failed_;
  std::optional<support::line_file> gradients_;
  bool gradients_begun_ = false;

  isotope::step_report look(std::span<const isotope::batch> batches, const isotope::step_scalars& x) {
    if (steps_ == 1 && !watch_.dump_nodes.empty()) {
      if (traced_ == 1) traced_ = 2;  // a step is inspected only once
      return reported(isotope::train::dump_nodes(session_, batches, x),
                      [&](const auto& dump) { return support::write_report(watch_.dump_nodes, text_of(dump, session_.plan())); });
    }
    if (steps_ == traced_ && (!watch_.trace.empty() || kernels_ != nullptr))
      return reported(
          isotope::train::trace_step(session_, batches, x, support::seconds_now), [&](const auto& trace) -> isotope::result<void> {
            const isotope::plan_view& plan = session_.plan();
            if (kernels_ != nullptr)
              kernels_->write(isotope::train::kernels_line(kernel_times_of(trace, plan, predicted_usec_), number_of(x, batches)));
            if (watch_.trace.empty()) return {};
            return support::write_report(watch_.trace,
                                         trace_json(trace, plan, std::string(program) + " step " + std::to_string(number_of(x, batches))));
          });
    return session_.step(batches, x);
  }
  /// Returns the report of an inspected step after write(looked) has stored it.
  template <class Looked, class Write> isotope::step_report reported(isotope::result<Looked> looked, const Write& write) {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    if (!looked) return keep(std::move(looked).error()), isotope::step_report{nan, nan, true};
    if (auto r = write(*looked); !r) keep(std::move(r).error());
    return looked->report;
  }
  /// @error as gradient_lines, line_file::open
  isotope::result<void> put_gradients(std::int64_t step, std::size_t micro_batches) {
    if (auto r = isotope::train::status_of(session_); !r) return r;
    auto lines = isotope::train::gradient_lines(session_, step, micro_batches);
    if (!lines) return std::move(lines).error();
    const bool to_stderr = watch_.gradients == "-", first = !std::exchange(gradients_begun_, true);
    if (first) lines->insert(lines->begin(), isotope::train::gradient_columns);
    if (first && !to_stderr) {
      auto file = support::line_file::open(watch_.gradients, step > watch_.gradients_every);
      if (!file) return std::move(file).error();
      gradients_ = *std::move(file);
    }
    for (const std::string& line : *lines)
      if (to_stderr) std::fputs((line + '\n').c_str(), stderr);
      else gradients_->write(line);
    return {};
  }
  /// Repeats a step that changed nothing and says where it went wrong.
  void explain(std::span<const isotope::batch> batches, const isotope::step_scalars& x) {
    auto found = isotope::train::find_non_finite(session_, batches, x);
    if (!found) return keep(std::move(found).error());
    const std::string where =
        *found ? "first number that is not finite: " + text_of(**found, session_.plan()) : "the step tried again was finite";
    support::remark(program, "step " + std::to_string(number_of(x, batches)) + ": " + where);
  }
  void keep(isotope::failure f) {
    if (failed_.what.empty()) failed_ = std::move(f);
  }
  /// Returns the number of the step in the run from the number of its first micro-batch.
  static std::int64_t number_of(const isotope::step_scalars& x, std::span<const isotope::batch> batches) {
    return std::int64_t(x.counter / batches.size()) + 1;
  }
};

}  // namespace train_program
