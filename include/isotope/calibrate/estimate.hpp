#pragma once
/// Predicts the time of a plan on a device from its steps: shapes, bytes and operations, whatever model they are of.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "../op/attention.hpp"
#include "../op/embedding.hpp"
#include "../op/matmul.hpp"
#include "../plan/flops.hpp"
#include "calibration.hpp"

namespace isotope {

/// What takes most of the time of a step.
enum class bound : std::uint8_t { matrix_rate, bandwidth, functions, launch };
inline constexpr std::array<std::string_view, 4> bound_names = {"matrix rate", "bandwidth", "functions", "launch"};
constexpr std::string_view name_of(bound b) { return bound_names[std::size_t(b)]; }

/// The predicted time of a step or a plan, in seconds, and what it consists of.
struct time_estimate {
  std::array<double, bound_names.size()> parts{};  // seconds, by bound
  std::int64_t flops = 0, bytes = 0;
  provenance from = provenance::measured;  // the weakest of the figures that were used

  double seconds() const {
    double sum = 0;
    for (const double s : parts) sum += s;
    return sum;
  }
  /// The part that takes most.
  bound limit() const { return bound(std::max_element(parts.begin(), parts.end()) - parts.begin()); }
  void add(const time_estimate& o, double times) {
    for (std::size_t k = 0; k < parts.size(); ++k) parts[k] += times * o.parts[k];
    flops += std::int64_t(times) * o.flops;
    bytes += std::int64_t(times) * o.bytes;
    from = std::min(from, o.from);
  }
};

namespace calibrate_detail {
inline bool is_heavy(std::string_view op) {
  for (const std::string_view part :
       {"gelu", "silu", "exp", "erf", "tanh", "sigmoid", "log", "pow", "sin", "cos", "softmax", "cross_entropy"})
    if (op.find(part) != op.npos) return true;
  return false;
}
inline bool drops(std::string_view op) { return op.find("dropout") != op.npos; }

/// Bytes that a step reads and writes: of tables that it looks up rows in, and of tensors that it appends rows to, only those rows.
inline std::int64_t bytes_of(const plan_view& p, const step& s) {
  std::int64_t all = 0, rows = 0;
  for (int k = 0; k < s.inputs + s.outputs; ++k) {
    const std::int64_t bytes = p.operands[std::size_t(s.operands + k)].bytes;
    all += bytes;
    if (s.op == &info<op::embedding> ? k >= s.inputs : k < s.inputs && ((s.op->inout >> k) & 1) == 0) rows += bytes;
  }
  return s.op == &info<op::embedding> || s.op->name == "cache_append" ? 2 * rows : all;
}
/// The bandwidth for so many bytes: between both measurements, in proportion to the logarithm.
inline double stream(const calibration& c, double bytes) {
  const double small = c[quantity::stream_small].value, large = c[quantity::stream_large].value;
  constexpr double from = double(1 << 20), to = double(64 << 20);
  const double share = std::clamp(std::log(std::max(bytes, 1.0) / from) / std::log(to / from), 0.0, 1.0);
  return std::exp((1 - share) * std::log(small) + share * std::log(large));
}
}  // namespace calibrate_detail

/// The time of step s: that of its products or bytes, whichever takes longer, of functions on elements, and of its launch.
///
/// - matmul of up to 8 rows: bytes / rows; of more: flops / product_large + what 512^3 took longer than that says;
/// - attention: flops / attention, and random numbers where it drops probabilities;
/// - other steps: bytes / stream, with elements of gelu and the like, and of dropout, besides.
///
/// Nothing is predicted from a figure that there is not: the part is 0 then, and `from` says none.
inline time_estimate estimate(const plan_view& p, const step& s, const calibration& c) {
  namespace d = calibrate_detail;
  time_estimate r;
  r.flops = flops_of(p, s);
  r.bytes = d::bytes_of(p, s);
  const auto at = [&](quantity q) {
    r.from = std::min(r.from, c[q].from);
    return c[q].value;
  };
  const auto over = [&](double n, quantity q) {
    const double rate = at(q);
    return rate > 0 ? n / rate : 0.0;
  };
  const operand& y = p.operands[std::size_t(s.operands + s.inputs)];
  const double elements = double(y.dims.count());
  double products = 0, functions = 0, bytes = 0;
  at(quantity::stream_small);
  if (at(quantity::stream_large) > 0) bytes = double(r.bytes) / d::stream(c, double(r.bytes));
  if (s.op == &info<op::matmul>) {
    const operand& b = p.operands[std::size_t(s.operands + 1)];
    constexpr double small_flops = 2.0 * 512 * 512 * 512;
    if (elements <= 8 * double(b.dims[-1])) bytes = over(double(r.bytes), quantity::rows);
    else
      products = over(double(r.flops), quantity::product_large) +
                 std::max(0.0, over(small_flops, quantity::product_small) - over(small_flops, quantity::product_large));
  } else if (s.op == &info<op::attention> || s.op == &info<op::attention_grad>) {
    const bool backward = s.op == &info<op::attention_grad>;
    products = over(double(r.flops), backward ? quantity::attention_grad : quantity::attention);
    const auto how = op::attention_constants::of(s.attr);
    const double width = double(y.dims[-1]) / double(how.heads + (backward && how.packed ? 2 * how.kv_heads : 0));
    if (how.dropout > 0) functions += over(double(r.flops) / ((backward ? 10 : 4) * width), quantity::random);
  } else if (s.body_size == 0) {
    const operand& x = p.operands[std::size_t(s.operands)];
    if (d::is_heavy(s.op->name)) functions += over(s.inputs > 0 ? double(x.dims.count()) : elements, quantity::heavy);
    if (d::drops(s.op->name)) functions += over(elements, quantity::random);
  }
  for (int k = 0; k < s.body_size; ++k) {
    const std::string_view called = p.micro_ops[std::size_t(s.body + k)].op->name;
    if (d::is_heavy(called)) functions += over(elements, quantity::heavy);
    if (d::drops(called)) functions += over(elements, quantity::random);
  }
  r.parts[std::size_t(products > bytes ? bound::matrix_rate : bound::bandwidth)] = std::max(products, bytes);
  r.parts[std::size_t(bound::functions)] = functions;
  r.parts[std::size_t(bound::launch)] = at(quantity::launch) + at(quantity::barrier);
  return r;
}

/// The time of a step of training or of a run, with so many micro-batches, from its start to its end.
inline time_estimate estimate(const plan_view& p, const calibration& c, std::int64_t micro_batches = 1) {
  time_estimate sum;
  for (const step& s : p.steps) {
    const auto runs = [&](int active) { return (s.phases & active) != 0 ? 1 : 0; };
    const std::int64_t last = runs((micro_batches == 1 ? phase_first : phase_later) | phase_last);
    const std::int64_t before = micro_batches == 1 ? 0 : runs(phase_first) + (micro_batches - 2) * runs(phase_later);
    sum.add(estimate(p, s, c), double(before + last));
  }
  sum.parts[std::size_t(bound::launch)] += c[quantity::round_trip].value;
  sum.from = std::min(sum.from, c[quantity::round_trip].from);
  return sum;
}

/// The operations of the plan per second that it takes, as a share of the rate of a large product (model FLOP utilisation).
inline double share_of_matrix_rate(const time_estimate& e, double seconds, const calibration& c) {
  const double rate = c[quantity::product_large].value;
  return rate > 0 && seconds > 0 ? double(e.flops) / seconds / rate : 0;
}

}  // namespace isotope
