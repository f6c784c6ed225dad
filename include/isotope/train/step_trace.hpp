#pragma once
/// Records where the time of one step goes, launch by launch, in the format of chrome://tracing and ui.perfetto.dev.
#include <isotope/core/error.hpp>
#include <isotope/io/json_text.hpp>
#include <isotope/plan/kernels.hpp>
#include <isotope/plan/pass.hpp>
#include <isotope/plan/report/to_text.hpp>
#include <isotope/train/decimal.hpp>
#include <isotope/train/observed_step.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace isotope::train {

struct timed_launch {
  std::int64_t step = -1;  // of the plan; -1: the copy of the outputs to the host
  std::size_t micro_batch = 0;
  std::string code;  // shader, if there is one
  std::string set;   // kernel set
  double begin = 0, usec = 0;
  std::int64_t bytes = 0;  // read and written
};

struct step_trace {
  std::vector<timed_launch> launches;
  step_report report;  // of the step, which counts like any other
};

namespace detail {

inline std::int64_t bytes_of(const plan_view& p, const step& s) {
  std::int64_t n = 0;
  for (int k = 0; k < s.inputs + s.outputs; ++k) n += p.operands[std::size_t(s.operands + k)].bytes;
  return n;
}

}  // namespace detail

/// Runs one optimizer step and times each launch by the device's own clock if the session has one (session::profile), else by `now`, in seconds.
/// Micro-batches follow one another without gaps.
/// @error as put; missing_feature for a device without a clock
template <ObservableSession S, class Now>
result<step_trace> trace_step(S& session, std::span<const batch> batches, const step_scalars& given, Now now) {
  step_trace trace;
  double at = 0;  // microseconds
  auto report =
      each_micro_batch(session, batches, given, [&](std::size_t m, const step_scalars& x, std::uint8_t active) -> result<step_report> {
        if constexpr (CanProfile<S>) {
          auto timed = session.profile(x, active);
          if (!timed) return timed.error();
          for (const auto& t : timed->launches) {
            trace.launches.push_back({t.step, m, std::string(t.code), std::string(t.set), at, t.usec, t.bytes});
            at += t.usec;
          }
          return timed->report;
        } else {
          const plan_view& p = session.plan();
          double before = now();
          return session.observe(
              x,
              [&](std::size_t i) {
                const double after = now(), usec = (after - before) * 1e6;
                const step& s = p.steps[i];
                const std::string_view set = s.kernel < 0 ? "" : kernel_table<typename S::target>[std::size_t(s.kernel)].set;
                trace.launches.push_back({std::int64_t(i), m, {}, std::string(set), at, usec, detail::bytes_of(p, s)});
                at += usec;
                before = now();
              },
              active);
        }
      });
  if (!report) return report.error();
  trace.report = *report;
  return trace;
}

/// Returns the microseconds in the launches of each part of the step.
inline std::array<double, 3> part_times(const step_trace& t, const plan_view& p) {
  const auto parts = passes_of(p);
  std::array<double, 3> usec{};
  for (const auto& l : t.launches)
    if (l.step >= 0) usec[std::size_t(parts[std::size_t(l.step)])] += l.usec;
  return usec;
}

/// A JSON object with `traceEvents`: a row for each part of the step, a complete event (ph X, microseconds) for each launch.
inline std::string trace_json(const step_trace& t, const plan_view& p, std::string_view process) {
  const auto parts = passes_of(p);
  std::string r = R"({"displayTimeUnit":"ns","traceEvents":[)";
  r += R"({"name":"process_name","ph":"M","pid":1,"args":{"name":)" + io::json_string(process) + "}}";
  for (const auto part : {pass::forward, pass::backward, pass::optimizer})
    r += R"(,{"name":"thread_name","ph":"M","pid":1,"tid":)" + std::to_string(int(part) + 1) + R"(,"args":{"name":)" +
         io::json_string(name_of(part)) + "}}";
  r += R"(,{"name":"thread_name","ph":"M","pid":1,"tid":4,"args":{"name":"to the host"}})";
  for (const auto& l : t.launches) {
    const bool own = l.step >= 0;
    const auto i = std::size_t(own ? l.step : 0);
    r += R"(,{"name":)" + io::json_string(own ? step_to_text(p, i) : "copy of the outputs") + R"(,"cat":)" +
         io::json_string(own ? name_of(parts[i]) : "copy") + R"(,"ph":"X","pid":1,"tid":)" + std::to_string(own ? int(parts[i]) + 1 : 4) +
         R"(,"ts":)" + fixed(l.begin, 3) + R"(,"dur":)" + fixed(l.usec, 3) + R"(,"args":{"step":)" + std::to_string(l.step) +
         R"(,"micro_batch":)" + std::to_string(l.micro_batch) + R"(,"kernels":)" + io::json_string(l.set) + R"(,"bytes":)" +
         std::to_string(l.bytes);
    if (!l.code.empty()) r += R"(,"shader":)" + io::json_string(l.code);
    if (own && p.steps[i].outputs > 0)
      r += R"(,"shape":)" + io::json_string(to_text(p.operands[std::size_t(p.steps[i].operands + p.steps[i].inputs)].dims));
    if (l.usec > 0) r += R"(,"GB/s":)" + fixed(double(l.bytes) / l.usec * 1e-3, 1);
    r += "}}";
  }
  return r + "]}\n";
}

}  // namespace isotope::train
