#pragma once
/// The reports of diagnose_settings, on whatever backend the program was compiled for.
#include "diagnose_settings.hpp"
#include "exit_code.hpp"
#include "report_file.hpp"

#include <isotope/core/device.hpp>
#include <isotope/plan/dynamic.hpp>
#include <isotope/plan/report/dispatches.hpp>
#include <isotope/plan/report/fusion.hpp>
#include <isotope/plan/report/mesh.hpp>
#include <isotope/plan/report/steps.hpp>
#include <isotope/plan/report/trace.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace support {

/// @error invalid_argument: a report's folder does not exist
inline isotope::result<void> check_report_folders(const diagnose_settings& s) {
  for (const std::string* path : {&s.dispatch_report, &s.step_list, &s.ir_dump, &s.fusion_report})
    if (auto r = check_folder_of(*path == "-" ? "" : *path); !r) return r;
  return {};
}

/// The reports on a trace, which `trace()` makes when one is wanted. @error as write_report
template <isotope::Target T, class Trace> isotope::result<void> write_trace_reports(const diagnose_settings& s, const Trace& trace) {
  if (s.ir_dump.empty() && s.fusion_report.empty()) return {};
  const isotope::trace g = trace();
  if (!s.ir_dump.empty())
    if (auto r = write_report(s.ir_dump, trace_text(g)); !r) return r;
  if (s.fusion_report.empty()) return {};
  const auto epilogues = isotope::epilogues_of(isotope::kernel_table<T>, g.program);
  return write_report(s.fusion_report, fusion_report(g, epilogues));
}

/// The reports on a loaded plan. @error as write_report
template <class Session>
isotope::result<void> write_plan_reports(std::string_view program, const diagnose_settings& s, const Session& session) {
  using target = typename Session::target;
  constexpr std::string_view wanted = target::kernel_set::name, native_reason = target::backend::native_reason;
  if (!s.step_list.empty())
    if (auto r = write_report(s.step_list, step_list(session.plan())); !r) return r;
  if (!s.dispatch_report.empty())
    if (auto r = write_report(s.dispatch_report, dispatch_report(session.plan(), session.launches(), wanted, native_reason)); !r) return r;
  if (s.log_fallback)
    for (const auto& f : fall_throughs(session.plan(), session.launches(), wanted, native_reason))
      remark(program, std::string(f.op) + " runs " + std::string(f.set) + ": " + f.reason + " (" + std::to_string(f.launches) +
                          (f.launches == 1 ? " launch)" : " launches)"));
  return {};
}

/// A line on the device, and one on the plan that was loaded onto it.
template <class Device, class Session>
void describe_load(std::string_view program, const diagnose_settings& s, const Device& device, const Session& session) {
  if (!s.verbose) return;
  const isotope::device_info info = device.info();
  remark(program, std::string(info.backend) + " device " + std::to_string(info.index) + ", " + info.name + ", " +
                      std::string(name_of(info.kind)) + ", " + std::to_string(info.units) + " units" +
                      (info.driver.empty() ? "" : ", driver " + info.driver));
  const isotope::plan_view& p = session.plan();
  remark(program, "plan of " + std::to_string(p.steps.size()) + " steps, " + std::to_string(p.totals.parameters) + " parameters, arena " +
                      std::to_string(p.totals.bytes) + " bytes, temporaries " +
                      std::to_string(p.totals.region[std::size_t(isotope::value_kind::temp)]) + ", planned in all " +
                      std::to_string(session.planned_bytes()) + ", measured " + std::to_string(session.measured_bytes()) + ", " +
                      std::to_string(isotope::flops_of(p)) + " floating-point operations a run");
  if (const auto line = isotope::mesh_line(p); !line.empty()) remark(program, line);
  if (p.totals.head_chunks > 1) remark(program, "head in " + std::to_string(p.totals.head_chunks) + " chunks of rows");
  if (const auto why = text_of(p.totals.obstacle); !why.empty()) remark(program, "head in one piece: " + std::string(why));
}

/// What a session did, and what its queue has to say, at the end of a program.
template <class Session> void describe_end(std::string_view program, const diagnose_settings& s, Session& session) {
  if (s.verbose) {
    const auto& c = session.counters();
    std::string line = std::to_string(c.steps) + " steps, " + std::to_string(c.evaluations) + " evaluations, " +
                       std::to_string(c.launches) + " launches, " + std::to_string(c.bytes_in) + " bytes in, " +
                       std::to_string(c.bytes_out) + " bytes out, " + std::to_string(c.submits) + " submissions, " +
                       std::to_string(c.barriers) + " barriers";
    remark(program, line);
    if (const std::string device = session.queue().totals(); !device.empty()) remark(program, "device: " + device);
  }
  for (const std::string& text : session.queue().messages()) remark(program, one_line(text));
}

}  // namespace support
