#pragma once
/// What programs that measure a whole model share: clocks, rates, and where the time of a run goes.
#include <isotope/isotope.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bench {

/// Seconds of the clock, and seconds of processor time of all threads.
inline double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
inline double processor_seconds() { return double(std::clock()) / CLOCKS_PER_SEC; }

/// Prints a failure and returns the exit code of a program that failed.
inline int fail(std::string_view program, const isotope::failure& f) {
  return std::fprintf(stderr, "%.*s: %s\n", int(program.size()), program.data(), f.line().c_str()), 1;
}

inline double median(std::vector<double> all) {
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

/// Calls per second, by the clock and by processor time: the best of the spans of a tenth of a second, of which there is at least one.
struct rate {
  double wall = 0, cpu = 0;
};
template <class F> rate rate_of(double span, const F& call) {
  rate best;
  const double end = seconds() + span;
  do {
    const double wall = seconds(), cpu = processor_seconds();
    int n = 0;
    for (; n == 0 || seconds() - wall < 0.1; ++n) call();
    best.wall = std::max(best.wall, n / (seconds() - wall));
    best.cpu = std::max(best.cpu, n / std::max(processor_seconds() - cpu, 1e-9));
  } while (seconds() < end);
  return best;
}

/// Options of a device with the file of ISOTOPE_CACHE. Where it names one, variants of kernels are timed that it lacks, unless ISOTOPE_AUTOTUNE is another level.
template <class Options> Options options_of_environment() {
  Options o;
  const char *cache = std::getenv("ISOTOPE_CACHE"), *level = std::getenv("ISOTOPE_AUTOTUNE");
  if (cache != nullptr) o.cache = cache;
  if (cache != nullptr) o.autotune = isotope::tuning::measure;
  for (std::size_t k = 0; level != nullptr && k < isotope::tuning_names.size(); ++k)
    if (isotope::tuning_names[k] == level) o.autotune = isotope::tuning(k);
  return o;
}

/// Sets the number of threads where a device has any.
template <class Options> void use_threads([[maybe_unused]] int threads, [[maybe_unused]] Options& o) {
  if constexpr (requires { o.threads; }) o.threads = threads;
}

/// The op of step k with its fused ops, the shape of its result, and those of its first two inputs.
inline std::string step_text(const isotope::plan_view& plan, std::size_t k) {
  const isotope::step& s = plan.steps[k];
  std::string text(s.op->name);
  for (int m = 0; m < s.body_size; ++m) text += (m == 0 ? ": " : " ") + std::string(plan.micro_ops[std::size_t(s.body + m)].op->name);
  for (const int o : {int(s.inputs), 0, 1})
    if (o < s.inputs + s.outputs) {
      text += o == 0 ? " from" : "";
      const auto& d = plan.operands[std::size_t(s.operands + o)].dims;
      for (int a = 0; a < d.rank; ++a) text += (a == 0 ? " [" : ",") + std::to_string(d[a]);
      text += "]";
    }
  return text;
}

/// Times by name.
class time_table {
 public:
  void add(const std::string& name, double usec) {
    auto& [sum, times] = rows_[name];
    sum += usec, ++times;
  }
  /// Prints the means over a number of runs, the slowest first.
  void print(int runs, const char* title) const {
    std::vector<std::pair<std::string, std::pair<double, int>>> sorted(rows_.begin(), rows_.end());
    std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second.first > b.second.first; });
    double all = 0;
    for (const auto& [name, row] : sorted) all += row.first;
    std::printf("%s, %.1f us:\n", title, all / runs);
    for (const auto& [name, row] : sorted)
      std::printf("  %8.1f us %5.1f %%  %4d times  %7.2f us each  %s\n", row.first / runs, 100 * row.first / all, row.second / runs,
                  row.first / row.second, name.c_str());
  }

 private:
  std::map<std::string, std::pair<double, int>> rows_;
};

/// Prints where the time of a run of the first plan goes: that of each kernel alone by the device's clock, or where the device has none, that
/// of each step.
template <class Session> isotope::result<void> profile(Session& s) {
  time_table table;
  if constexpr (requires { s.profile(isotope::step_scalars{}); }) {
    static_cast<void>(s.profile({}));
    auto timed = s.profile({});
    if (!timed) return std::move(timed).error();
    for (const auto& t : timed->launches)
      table.add(std::string(t.code) + " (" + std::string(t.set) + (t.reason.empty() ? "" : ": " + std::string(t.reason)) + ") " +
                    (t.step < 0 ? "copy of the outputs" : step_text(s.plan(), std::size_t(t.step))),
                t.usec);
    table.print(1, "kernels one after the other");
  } else {
    constexpr int runs = 20;
    for (int i = 0; i < runs; ++i) {
      double before = seconds();
      static_cast<void>(s.observe(
          {},
          [&](std::size_t k) {
            const double now = seconds();
            table.add(step_text(s.plan(), k), 1e6 * (now - before));
            before = seconds();
          },
          isotope::phase_always));
    }
    table.print(runs, "steps one after the other");
  }
  return {};
}

}  // namespace bench
