#pragma once
/// The session of one rank as the training loop sees it: batches are those of all ranks, of which it takes its own rows.
#include "../support/clock.hpp"
#include "../support/interrupt.hpp"
#include "../support/run_ranks.hpp"
#include "run_log.hpp"

#include <isotope/comm/told_communicator.hpp>
#include <isotope/core/error.hpp>
#include <isotope/train/batch.hpp>
#include <isotope/train/checkpointing.hpp>
#include <isotope/train/kernel_times.hpp>
#include <isotope/train/plan_lines.hpp>
#include <isotope/train/session.hpp>
#include <isotope/train/step_trace.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace train_program {

/// Every rank makes the same calls. A step is watched, and at its end the ranks agree whether the run was interrupted on one of them.
template <isotope::train::TrainingSession Session> class mesh_session {
 public:
  /// @param first_step  the number of the next step, for what the watchdog says
  mesh_session(Session& session, support::rank_end& rank, std::int64_t first_step) : session_(session), rank_(rank), next_(first_step) {
    const isotope::rank_groups all = session.groups();
    const auto told = [&](isotope::communicator* group, std::optional<isotope::told_communicator>& to) -> isotope::communicator* {
      return group == nullptr ? nullptr : &to.emplace(*group, rank.dog, doing_);
    };
    told_ = {told(all.tensor, tensor_), told(all.data, data_)};
  }

  /// Whether the run was interrupted, the same on all ranks.
  const std::atomic<bool>& interrupted() const { return interrupted_; }

  isotope::step_report step(std::span<const isotope::batch> batches, const isotope::step_scalars& x) {
    const isotope::watchdog::watched w(rank_.dog, "step " + std::to_string(next_) + " of rank " + std::to_string(rank_.rank));
    const bool timed = kernels_ != nullptr && next_ == timed_;
    ++next_;
    std::vector<isotope::batch> own;
    for (const isotope::batch& b : batches) own.push_back(rows_of(b));
    const isotope::step_report r = timed ? timed_step(own, x) : session_.step(own, x);
    if (!status()) return r;
    std::array<std::int32_t, 1> stop{support::interrupt_requested.load(std::memory_order_relaxed) ? 1 : 0};
    keep(rank_.control.all_reduce(std::as_writable_bytes(std::span(stop)), isotope::dtype::i32, isotope::reduction::max));
    if (stop[0] != 0) interrupted_.store(true, std::memory_order_relaxed);
    return r;
  }
  /// From now on, step `number` is timed launch by launch, and its line goes to the log. The other ranks need not time theirs: the launches are the same.
  void time_step(run_log& kernels, std::int64_t number) { kernels_ = &kernels, timed_ = number; }
  /// The mean over the targets of all rows that are classes.
  double evaluate(const isotope::batch& b) {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    const isotope::watchdog::watched w(rank_.dog,
                                       "validation after step " + std::to_string(next_ - 1) + " of rank " + std::to_string(rank_.rank));
    const isotope::batch own = rows_of(b);
    const auto count = std::count_if(own.targets.begin(), own.targets.end(), [](std::int32_t t) { return t >= 0; });
    // The ranks of a tensor group have the same rows, so they evaluate together or not at all.
    const double loss = count > 0 ? session_.evaluate(own) : 0;
    if (!status()) return nan;
    const bool counts = rank_.at.tensor == 0 && count > 0;
    std::array<double, 2> sums{counts ? loss * double(count) : 0, counts ? double(count) : 0};
    keep(rank_.control.all_reduce(std::as_writable_bytes(std::span(sums)), isotope::dtype::f64, isotope::reduction::sum));
    return status() ? sums[0] / sums[1] : nan;
  }
  /// Watches the saving of what `what` says, such as "the checkpoint after step 20". It may take as long as a step, and a second more for each 8 MiB.
  isotope::watchdog::watched saving(const std::string& what) {
    constexpr double bytes_per_second = 8 << 20;
    const auto bytes = isotope::train::checkpoint_bytes(*this);
    doing_ = "was " + saves();
    return {rank_.dog, "saving " + what + " on rank " + std::to_string(rank_.rank),
            rank_.dog.step_seconds() + (bytes ? double(*bytes) / bytes_per_second : 0), doing_};
  }
  isotope::result<void> status() const {
    if (!failed_.what.empty()) return failed_;
    return isotope::train::status_of(session_);
  }

  auto parameters() const { return session_.parameters(); }
  auto states() const { return session_.states(); }
  void initialize(std::uint64_t seed) { session_.initialize(seed); }
  isotope::result<void> read(isotope::tensor_kind kind, std::size_t slot, std::span<float> out) { return session_.read(kind, slot, out); }
  isotope::result<void> write(isotope::tensor_kind kind, std::size_t slot, std::span<const float> in) {
    return session_.write(kind, slot, in);
  }
  bool keeps(isotope::tensor_kind kind, std::size_t slot) const { return session_.keeps(kind, slot); }
  isotope::rank_groups groups() const { return told_; }
  bool divides(isotope::tensor_kind kind, std::size_t slot) const { return session_.divides(kind, slot); }
  isotope::result<void> read_own(isotope::tensor_kind kind, std::size_t slot, std::span<float> out) {
    const std::string name = kind == isotope::tensor_kind::state ? "a state" : "'" + std::string(parameters()[slot].path.view()) + "'";
    does("was reading " + name + " from the device");
    auto r = session_.read_own(kind, slot, out);
    does("was " + saves() + ", at " + name);
    return r;
  }
  std::string algorithms() const { return isotope::train::algorithms_of(session_); }
  std::int64_t planned_bytes() const { return session_.planned_bytes(); }
  std::int64_t measured_bytes() const { return session_.measured_bytes(); }

 private:
  Session& session_;
  support::rank_end& rank_;
  std::int64_t next_;
  std::atomic<bool> interrupted_{false};
  isotope::failure failed_;
  run_log* kernels_ = nullptr;
  std::int64_t timed_ = -1;
  std::string doing_;  // while it saves
  std::optional<isotope::told_communicator> tensor_, data_;
  isotope::rank_groups told_;

  /// Rank 0 writes what the others send.
  std::string saves() const { return rank_.leads() ? "writing" : "sending"; }
  void does(std::string doing) {
    doing_ = std::move(doing);
    rank_.dog.tell(doing_);
  }

  isotope::step_report timed_step(std::span<const isotope::batch> own, const isotope::step_scalars& x) {
    auto trace = isotope::train::trace_step(session_, own, x, support::seconds_now);
    if (!trace) {
      constexpr double nan = std::numeric_limits<double>::quiet_NaN();
      keep(std::move(trace).error());
      return {nan, nan, true};
    }
    kernels_->write(isotope::train::kernels_line(kernel_times_of(*trace, session_.plan()), timed_));
    return trace->report;
  }

  /// The rows of this data index, which lie together.
  isotope::batch rows_of(const isotope::batch& b) const {
    const std::size_t each = b.tokens.size() / std::size_t(rank_.team.mesh.data), first = each * std::size_t(rank_.at.data);
    return {b.tokens.subspan(first, each), b.targets.subspan(first, each)};
  }
  void keep(const isotope::result<void>& r) {
    if (!r && failed_.what.empty()) failed_ = r.error();
  }
};

}  // namespace train_program
