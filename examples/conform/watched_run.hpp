#pragma once
/// A run whose ops may hang: another process watches it and restarts it without them.
#include "command.hpp"

#include "../support/exit_code.hpp"
#include "../support/watched_process.hpp"

#include <isotope/conform/run.hpp>

#include <cstdint>
#include <string>
#include <utility>

namespace conform_program {

/// How a run is executed, which does not affect its results.
struct run_manner {
  std::int64_t jobs = 1;  // batches that run concurrently
  const support::work_log* log = nullptr;
};

/// Exit code for the watching process: the op that ran last lost the device.
inline constexpr int device_gone = 75;

/// Calls `job.run(run_options, run_manner)` in a process of its own; it returns an exit code. If an op hangs, or takes the process or the device
/// down, the next process counts it as failed and continues, from the checkpoint if there is one. If batches ran concurrently, the op is unknown:
/// from then on they run one by one.
template <class Job> int watched(const Job& job, isotope::conform::run_options o, std::int64_t jobs, std::int64_t seconds) {
  o.one_op = true;
  std::string together;  // what happened to concurrent batches
  for (;;) {
    auto end = support::run_watched(double(seconds), [&](const support::work_log& log) { return job.run(o, run_manner{jobs, &log}); });
    int code = support::success;
    if (support::failed(program, end, code)) return code;
    using how = support::watched_end::kind;
    const bool gone = end->how == how::exited && end->code == device_gone;
    if (end->how == how::exited && !gone) {
      if (together.empty() || end->code != support::success) return end->code;
      return support::report(program, isotope::fail(isotope::errc::timeout, "a run with --jobs " + together + "; one by one all cases pass",
                                                    "--jobs", "look for what two openings of one device share"));
    }
    const std::string why = end->how == how::hung ? "does not end within " + std::to_string(seconds) + " seconds"
                            : gone                ? "loses the device"
                                                  : "ends the process with signal " + std::to_string(end->code);
    if (end->work.empty() || o.endless.contains(end->work))
      return support::report(program, isotope::fail(isotope::errc::timeout, "a run that " + why, end->work.empty() ? "device" : end->work,
                                                    "run it with --budget 0 under a debugger"));
    o.resume = !o.checkpoint_file.empty();
    if (jobs > 1) {
      together = std::to_string(std::exchange(jobs, 1)) + " " + why;
      continue;
    }
    together.clear();
    o.endless[end->work] = "its op " + why;
  }
}

}  // namespace conform_program
