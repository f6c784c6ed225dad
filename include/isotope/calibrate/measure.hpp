#pragma once
/// Measures a device by small plans, which run as those of models do: on any backend, by the clock of the host.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "../isotope.hpp"
#include "../plan/dynamic.hpp"
#include "calibration_file.hpp"
#include "estimate.hpp"

namespace isotope {

namespace calibrate_detail {

/// One model for every measurement, so that programs contain one tracer. Its result is small but for `whole`, since results are copied to the host.
struct probe {
  enum class kind : std::uint8_t { product, attention, attention_grad, scale, whole, gelu, dropout, chain, apart } what;
  std::int64_t rows = 1, inner = 1, columns = 1;
  /// That follow each other, each with a weight of its own, as in nn::linear: (columns, inner), (inner, columns) and so on.
  int products = 1;

  static constexpr std::array<std::string_view, 8> weights = {"w0", "w1", "w2", "w3", "w4", "w5", "w6", "w7"};
  static constexpr int heads = 12, head_size = 64, small_steps = 64;
  template <Machine M> constexpr tensor<M> operator()(scope<M> s) const {
    const auto first = [](tensor<M> y) { return narrow(y, 0, 0, 1); };
    switch (what) {
      case kind::product: {
        auto x = s.param("x", {rows, inner}, init::ones);
        for (int k = 0; k < products; ++k)
          x = matmul(x,
                     transpose(s.param(weights[std::size_t(k)], k % 2 == 0 ? shape{columns, inner} : shape{inner, columns}, init::ones)));
        return first(x);
      }
      case kind::attention:
      case kind::attention_grad: {
        const auto qkv = s.param("x", {rows, inner, 3 * heads * head_size}, init::ones);
        const attributes how = attention_options{.scale = 0.125}.of(qkv, heads, true, false);  // 1 / sqrt(head_size)
        const auto y = s.machine->apply(rules<op::attention>, std::array{qkv.id}, how, place::current());
        const tensor<M> out{s.machine, y.out[0]};
        if (what == kind::attention) return first(out);
        const auto g = s.machine->apply(rules<op::attention_grad>, std::array{qkv.id, y.out[0], y.out[1], y.out[0]}, how, place::current());
        return first(tensor<M>{s.machine, g.out[0]});
      }
      case kind::scale: return first(scale(s.param("x", {rows, inner}, init::ones), 2));
      case kind::whole: return scale(s.param("x", {rows, inner}, init::ones), 2);
      case kind::gelu: return first(gelu(s.param("x", {rows, inner}, init::ones)));
      case kind::dropout:
        return first(apply<op::dropout>(place::current(), op::dropout::constants{.p = 0.5}, s.param("x", {rows, inner}, init::ones)));
      default: break;
    }
    const auto w = s.param("w", {64}, init::ones), b = s.param("b", {64}, init::zeros);
    auto x = s.param("x", {small_steps, 64}, init::ones);
    if (what == kind::chain) {
      x = narrow(x, 0, 0, 1);
      for (int k = 0; k < small_steps; ++k) x = layer_norm(x, w, b);
      return x;
    }
    std::array<tensor<M>, 8> parts{};
    for (int k = 0; k < 8; ++k) {
      std::array<tensor<M>, 8> y{};
      for (int j = 0; j < 8; ++j) y[std::size_t(j)] = layer_norm(narrow(x, 0, 8 * k + j, 1), w, b);
      parts[std::size_t(k)] = concat({y[0], y[1], y[2], y[3], y[4], y[5], y[6], y[7]}, 0);
    }
    return concat({parts[0], parts[1], parts[2], parts[3], parts[4], parts[5], parts[6], parts[7]}, 0);
  }
};

/// Loads a probe and gives the least seconds of a run, of runs one after another. Nobody reads the results, so the parameters hold whatever their memory held.
/// @error as the device reports
template <Target T, class Device, class Clock>
result<double> seconds_of(const Device& device, const Clock& clock, const probe& what, double budget, bool one_by_one = false) {
  auto plan = plan_inference<T>(what);
  if (!plan) return std::move(plan).error();
  auto s = device.load(*std::move(plan));
  if (!s) return std::move(s).error();
  const auto timed = [&](int times) -> result<double> {
    const double began = clock();
    if (auto r = s->run_plan_times(0, times); !r) return r.error();
    return (clock() - began) / times;
  };
  auto best = timed(1);  // makes what the first run makes
  if (best) best = timed(1);
  if (!best) return best;
  const int times = one_by_one ? 1 : int(std::clamp(budget / 3 / std::max(*best, 1e-7), 1.0, 64.0));
  const int turns = one_by_one ? 16 : *best > budget ? 1 : 3;
  for (int k = 0; k < turns; ++k) {
    auto t = timed(times);
    if (!t) return t;
    *best = std::min(*best, *t);
  }
  return best;
}
}  // namespace calibrate_detail

/// Measures a device in the precision of T. Times are the least of a few, so that other work on the machine disturbs less.
///
/// @param device  key of the calibration (calibration_key)
/// @param clock   seconds from any start
/// @error         as the device reports; invalid_model where it lacks a kernel of a probe
template <Target T, class Device, class Clock>
result<calibration> measure_device(const Device& device, const Clock& clock, std::string key) {
  using calibrate_detail::probe, calibrate_detail::seconds_of;
  using kind = probe::kind;
  calibration c;
  c.device = std::move(key), c.format = name_of(T::precision::type);
  const double budget = Device::on_host ? 0.012 : 0.003;  // seconds of a figure
  failure failed;
  const auto seconds = [&](const probe& p, bool one_by_one = false) {
    if (!failed.what.empty()) return 1.0;
    auto t = seconds_of<T>(device, clock, p, budget, one_by_one);
    if (!t) failed = t.error();
    return t ? std::max(*t, 1e-9) : 1.0;
  };
  const double element = double(size_of(T::precision::type));
  // Runs of one small step, of 73 that wait for few others, and of 64 that wait for each other. The first has what a run takes besides its steps.
  const double none = seconds({kind::scale, 1, 64}), apart = seconds({kind::apart}), chain = seconds({kind::chain});
  const double launch = std::max(0.0, apart - none) / (probe::small_steps + 8);
  c.measured(quantity::launch, launch);
  c.measured(quantity::barrier, std::max(0.0, (chain - none) / (probe::small_steps - 1) - launch));
  c.measured(quantity::round_trip, seconds({kind::scale, 1, 64}, true));
  const auto of = [&](double amount, const probe& p, double besides = 0) {
    const double t = seconds(p);
    return amount / std::max(t - none - besides, 0.05 * t);
  };
  // Several products, so that neither the wait for the host nor a cache that holds one weight makes a figure of them.
  const auto of_products = [&](int n, double amount, std::int64_t rows, std::int64_t inner, std::int64_t columns) {
    const double besides = (n - 1) * (launch + c[quantity::barrier].value);
    return of(n * amount, {kind::product, rows, inner, columns, n}, besides);
  };
  const int several = Device::on_host ? 2 : 8;
  const double small = of_products(several, 2.0 * 512 * 512 * 512, 512, 512, 512);
  c.measured(quantity::product_small, small);
  std::int64_t side = 1024;
  while (side < 4096 && 2.0 * 8 * double(side * side * side) < small * budget * 4) side *= 2;
  c.measured(quantity::product_large,
             std::max(small, of_products(Device::on_host ? 1 : 8, 2.0 * double(side * side * side), side, side, side)));
  c.measured(quantity::rows, of_products(several, element * 1024 * 8192, 1, 1024, 8192));
  c.measured(quantity::rows_8, of_products(several, element * 1024 * 8192, 8, 1024, 8192));
  const std::int64_t B = side > 1024 ? 8 : 1, S = side > 1024 ? 1024 : 256;
  const double macs = double(B * probe::heads * probe::head_size) * (double(S) * double(S + 1) / 2);
  const double forward = of(4 * macs, {kind::attention, B, S});
  c.measured(quantity::attention, forward);
  c.measured(quantity::attention_grad, of(10 * macs, {kind::attention_grad, B, S}, 4 * macs / forward));
  const auto stream = [&](std::int64_t bytes) { return of(double(bytes), {kind::scale, bytes / 2 / std::int64_t(element) / 1024, 1024}); };
  c.measured(quantity::stream_small, stream(1 << 20));
  c.measured(quantity::stream_large, stream(64 << 20));
  constexpr std::int64_t rows = Device::on_host ? 1024 : 8192;
  const double elements = double(rows * 1024);
  const double moved = 2 * element * elements / calibrate_detail::stream(c, 2 * element * elements);
  c.measured(quantity::heavy, of(elements, {kind::gelu, rows, 1024}, moved));
  c.measured(quantity::random, of(elements, {kind::dropout, rows, 1024}, moved));
  // The same step twice, of whose result the host gets one row or all.
  const double one_row = seconds({kind::scale, 4096, 1024});
  c.measured(quantity::readback, of(element * 4096 * 1024, {kind::whole, 4096, 1024}, one_row));
  if (!failed.what.empty()) return failed;
  return c;
}

/// A calibration and what there is to say of its file, in one line; empty: nothing.
struct loaded_calibration {
  calibration figures;
  bool measured_now = false;
  std::string message;
};
/// Reads the calibration of a device, or measures it and writes the file. The caller makes the file's folder. @error as measure_device
template <Target T, class Device, class Clock>
result<loaded_calibration> load_or_measure(const Device& device, const std::string& path, const std::string& key, const Clock& clock) {
  loaded_calibration r;
  auto there = read_calibrations(path, key);
  r.message = there.ignored;
  if (const calibration* c = there.find(name_of(T::precision::type))) return r.figures = *c, r;
  auto c = measure_device<T>(device, clock, key);
  if (!c) return std::move(c).error();
  r.measured_now = true;
  if (auto w = write_calibration(path, *c); !w && r.message.empty()) r.message = w.error().line();
  r.figures = *std::move(c);
  return r;
}

}  // namespace isotope
