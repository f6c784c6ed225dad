#pragma once
/// One benchmark row: a plan run again and again, with its rate, traffic and share of what the machine can do.
#include <benchmark/benchmark.h>

#include <string>

#include "peak.hpp"

#include <isotope/isotope.hpp>
#include <isotope/selected.hpp>

namespace bench {

namespace iso = isotope;
using target = iso::selected;
using session = iso::device<target>::session;

/// What one run costs by the definition of the op: operations, and bytes that must be read or written once.
struct cost {
  double flops = 0, bytes = 0;
};

/// Loads a plan on as many threads as the row's argument says; reports the failure as the row's text.
inline iso::result<session> load(benchmark::State& state, iso::result<iso::dynamic_plan> plan) {
  if (!plan) {
    state.SkipWithError(plan.error().line().c_str());
    return plan.error();
  }
  auto device = iso::device<target>::open({.threads = int(state.range(0)), .name = {}});
  auto s = device->load(std::move(*plan));
  if (!s) state.SkipWithError(s.error().line().c_str());
  if (s) s->initialize(1);
  return s;
}

/// Shares are of the peak of the same number of threads; more than 1 would be a mistake in the cost, and is flagged as such.
inline void report(benchmark::State& state, const cost& c) {
  const auto top = peaks_of(int(state.range(0)));
  using counter = benchmark::Counter;
  state.counters["FLOP/s"] = counter(c.flops * double(state.iterations()), counter::kIsRate);
  state.counters["B/s"] = counter(c.bytes * double(state.iterations()), counter::kIsRate);
  state.counters["of_peak_flops"] = counter(c.flops * double(state.iterations()) / top.flops, counter::kIsRate);
  state.counters["of_copy_bytes"] = counter(c.bytes * double(state.iterations()) / top.bytes, counter::kIsRate);
}

/// Registers name/threads for 1 and 2 threads.
template <class F> void add(const std::string& name, F f) {
  benchmark::RegisterBenchmark(name.c_str(), f)->Arg(1)->Arg(2)->ArgName("threads")->UseRealTime()->Unit(benchmark::kMicrosecond);
}

}  // namespace bench
