#pragma once
/// --trace-in and --trace-out: repeats a run recorded elsewhere. The file gives sizes, data and the optimizer's constants.
#include "../support/exit_code.hpp"
#include "../support/gpt_session.hpp"
#include "../support/output.hpp"
#include "../support/plan_reports.hpp"
#include "../support/report_file.hpp"
#include "../support/run_options.hpp"
#include "settings.hpp"

#include <isotope/config/load.hpp>
#include <isotope/train/decimal.hpp>
#include <isotope/train/replay.hpp>

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

namespace train_program {

/// Rejects settings that the file of a replay determines. @error invalid_argument with the layer that set it, missing_value for one path alone
inline isotope::result<void> check_replay(const isotope::config::loaded<settings>& s) {
  using isotope::errc, isotope::fail;
  const trace_settings& t = s.value.trace;
  if (t.in.empty()) return fail(errc::missing_value, "needs a run to replay", "trace.out", "give --trace-in too");
  if (t.out.empty()) return fail(errc::missing_value, "needs a file for its results", "trace.in", "give --trace-out too");
  if (!s.size.empty())
    return fail(errc::invalid_argument, "contradicts --trace-in, whose file has the sizes", "--size " + s.size, "leave it out");
  for (const isotope::config::setting& set : s.settings) {
    bool free = set.origin == "default";
    for (std::string_view group : {"trace.", "machine.", "diagnose."}) free = free || set.key.starts_with(group);
    if (!free)
      return fail(errc::invalid_argument, "contradicts --trace-in, whose file has everything but the machine",
                  set.origin + ": " + set.key + " = " + set.value, "leave it out");
  }
  std::error_code ignored;
  if (t.in == t.out || std::filesystem::equivalent(t.in, t.out, ignored))
    return fail(errc::invalid_argument, "is the file to replay", "trace.out = " + t.out, "name another file for the results");
  return support::check_folder_of(t.out);
}

/// Replays as configured; returns the process's exit code.
inline int replay(const settings& s) {
  namespace train = isotope::train;
  using support::target;
  int code = support::success;
  auto recorded = train::read_recorded_run(s.trace.in);
  if (support::failed(program, recorded, code)) return code;
  // This comes before anything is planned or opened, because sizes may be arbitrary.
  auto model = train::parameters_of<target>(train::loss_of(*recorded));
  if (support::failed(program, model, code)) return code;
  if (auto r = train::check_weights(*recorded, *model); support::failed(program, r, code)) return code;

  const support::run_options options{program, s.machine, s.diagnose};
  auto session = support::open_training({recorded->size, {}}, {recorded->batch, recorded->length, false}, options);
  if (support::failed(program, session, code)) return code;
  auto replayed = train::replay(*session, *recorded);
  support::describe_end(program, s.diagnose, *session);
  if (support::failed(program, replayed, code)) return code;

  const isotope::io::text_pairs made_by = {{"program", std::string(program)},
                                           {"backend", std::string(target::backend::name)},
                                           {"precision", std::string(target::precision::name)},
                                           {"kernels", std::string(target::kernel_set::name)}};
  if (auto r = write_replayed_run(s.trace.out, *replayed, made_by); support::failed(program, r, code)) return code;
  support::print(std::to_string(recorded->steps) + " steps of " + std::to_string(recorded->batch) + " x " +
                 std::to_string(recorded->length) + " tokens: loss " + train::fixed(double(replayed->loss.front()), 6) + " to " +
                 train::fixed(double(replayed->loss.back()), 6) + ", " + s.trace.out + "\n");
  return support::success;
}

}  // namespace train_program
