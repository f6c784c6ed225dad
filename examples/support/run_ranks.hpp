#pragma once
/// Runs a program's work on every rank of this process: each on a thread of its own, with its device, its groups and a watchdog of its steps.
#include "exit_code.hpp"
#include "host_groups.hpp"
#include "processor_share.hpp"
#include "run_options.hpp"

#include <isotope/comm/mesh.hpp>
#include <isotope/comm/sanity.hpp>
#include <isotope/comm/watchdog.hpp>
#include <isotope/selected.hpp>

#include <device_groups.hpp>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace support {

using rank_device = isotope::device<isotope::selected>;

/// What a rank works with, on its own thread.
struct rank_end {
  const rank_team& team;
  int rank = 0;
  isotope::mesh_position at;
  rank_device& device;  // it has joined its groups
  isotope::mesh_communicators& mesh;
  isotope::communicator& control;  // all ranks on the host, for what programs agree on
  isotope::watchdog& dog;

  bool leads() const { return rank == 0; }
  std::string text() const { return "rank " + std::to_string(rank) + " of " + std::to_string(team.mesh.ranks()); }
};

/// Keeps what ended a run: the first failure that is a cause, and not the loss of another rank.
class first_failure {
 public:
  void take(const isotope::failure& f) {
    const std::lock_guard lock(mutex_);
    if (!kept_ || (kept_->code == isotope::errc::peer_lost && f.code != isotope::errc::peer_lost)) kept_ = f;
  }
  isotope::result<void> result() const {
    if (kept_) return *kept_;
    return {};
  }

 private:
  std::mutex mutex_;
  std::optional<isotope::failure> kept_;
};

/// Whether this backend has devices that can work together. @error missing_feature
inline isotope::result<void> can_join_devices() {
  if (device_groups<rank_device>::possible) return {};
  return isotope::fail(
      isotope::errc::missing_feature,
      "devices of the backend " + std::string(isotope::selected::backend::name) + " cannot work together: it has no collectives",
      "mesh.devices", "leave --devices and --ranks out, or build for another backend");
}

/// As run_ranks, for a backend whose devices can work together.
template <class Device>
isotope::result<void> run_ranks_on(const rank_team& team, const mesh_settings& mesh, const std::string& run_id, const run_options& run,
                                   const std::function<isotope::result<void>(rank_end&)>& work) {
  // A watchdog ends a step first; this bounds what it does not watch, such as waiting for a rank that reads a checkpoint.
  const double patience = std::max(600.0, mesh.step_timeout + mesh.abort_deadline);
  const auto host = host_groups::open(team, run_id, patience);
  if (!host) return host.error();
  const auto groups = device_groups<Device>::open(team, *host, team.processes() ? team.rank : -1);
  if (!groups) return groups.error();
  std::vector<int> everyone;
  for (int r = 0; r < team.mesh.ranks(); ++r) everyone.push_back(r);
  const auto control_group = host->make("control", everyone);

  std::atomic<bool> gave_up = false;
  const auto one_rank = [&](int rank) -> isotope::result<void> {
    machine_settings machine = run.machine;
    machine.device = device_groups<Device>::device_of(team, rank, machine);
    if (!team.processes()) machine.threads = take_processor_share(rank, team.here(), machine.threads);
    auto device = Device::open(run_options{run.program, machine, run.diagnose}.template device<isotope::selected::backend>());
    if (!device) return device.error();
    auto control = control_group->join(rank);
    if (!control) return control.error();
    isotope::mesh_communicators ends;
    std::atomic<const isotope::mesh_communicators*> joined = nullptr;
    const auto abort = [&](const isotope::failure& why) {
      (*control)->abort(why);
      if (const auto* all = joined.load()) all->abort(why);
      host->abort(why);
    };
    isotope::machine_clock clock;
    const auto is_late = [&](isotope::failure why) {
      why.fix = "look at the other ranks, or give it more time (--step-timeout)";
      abort(why);
    };
    const auto give_up = [&](isotope::failure why) {
      if (gave_up.exchange(true)) return;  // another rank of this process says what hung
      why.fix = "resume from the last checkpoint";
      std::_Exit(report(run.program, why));  // nothing else ends a process of which a thread hangs
    };
    isotope::watchdog dog({mesh.step_timeout, mesh.abort_deadline}, clock, is_late, give_up);
    const auto whole = [&]() -> isotope::result<void> {
      if (auto r = (*control)->barrier(); !r) return r;
      {
        constexpr double least = 300;  // it may take longer than a step
        isotope::machine_clock time;
        isotope::watchdog joining({std::max(mesh.step_timeout, least), mesh.abort_deadline}, time, is_late, give_up);
        const isotope::watchdog::watched w(joining, "joining of rank " + std::to_string(rank));
        auto c = (*groups)->join(rank, *device);
        if (!c) return c.error();
        ends = *std::move(c);
        joined = &ends;
        if (auto r = check_group(*ends.all); !r) return r.error();
      }
      device->join(ends.groups());
      rank_end end{team, rank, team.mesh.position_of(rank), *device, ends, **control, dog};
      return work(end);
    };
    auto r = whole();
    if (!r) abort(r.error());
    return r;
  };
  first_failure ended;
  std::vector<std::thread> threads;
  for (int r = team.first(); r < team.first() + team.here(); ++r)
    threads.emplace_back([&, r] {
      isotope::result<void> done;
      try {
        done = one_rank(r);
      } catch (const std::exception& e) {
        done = isotope::fail(isotope::errc::out_of_memory, std::string("the host ran out of memory or room: ") + e.what(), "",
                             "use a smaller size");
      }
      if (done) return;
      ended.take(done.error());
      host->abort(done.error());
    });
  for (auto& t : threads) t.join();
  return ended.result();
}

/// Calls work(rank_end&) on every rank of this process and returns when all have ended. A rank that fails ends the others.
///
/// @param run_id  the same on all processes of a run, and of no other run
/// @error of the rank that failed first; as can_join_devices, device_groups::open, host_groups::open
inline isotope::result<void> run_ranks(const rank_team& team, const mesh_settings& mesh, const std::string& run_id, const run_options& run,
                                       const std::function<isotope::result<void>(rank_end&)>& work) {
  if constexpr (device_groups<rank_device>::possible) return run_ranks_on<rank_device>(team, mesh, run_id, run, work);
  else return can_join_devices();
}

}  // namespace support
