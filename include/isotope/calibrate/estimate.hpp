#pragma once
/// Predicts the time of a plan on a device from its steps: shapes, bytes and operations, whatever model they are of.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include <boost/mp11/list.hpp>

#include "../op/all.hpp"
#include "../plan/flops.hpp"
#include "calibration.hpp"
#include "time_estimate.hpp"

namespace isotope {

namespace calibrate_detail {
/// Ops that compute exp, log, sin or the like of each element; no fact of op_info tells them from ops such as add. Gradients that are products of the result,
/// as those of tanh and softmax, are not among them.
using heavy_ops = boost::mp11::mp_list<op::cos, op::cross_entropy, op::cross_entropy_grad, op::cross_entropy_part_grad, op::erf, op::exp,
                                       op::gelu_erf, op::gelu_erf_grad, op::gelu_tanh, op::gelu_tanh_grad, op::log, op::log_softmax,
                                       op::log_softmax_grad, op::pow, op::sigmoid, op::silu, op::silu_grad, op::sin, op::softmax, op::tanh>;
template <class... Op> constexpr bool is_one_of(const op_info* op, boost::mp11::mp_list<Op...>) { return ((op == &info<Op>) || ...); }
constexpr bool is_heavy(const op_info* op) { return is_one_of(op, heavy_ops{}); }

/// Bytes that a step reads and writes: of tables that it looks up rows in, and of tensors that it appends rows to, only those rows; of caches that it attends
/// to, the share that holds tokens.
inline std::int64_t bytes_of(const plan_view& p, const step& s, double cached) {
  std::int64_t all = 0, rows = 0;
  for (int k = 0; k < s.inputs + s.outputs; ++k) {
    std::int64_t bytes = p.operands[std::size_t(s.operands + k)].bytes;
    if (s.op == &info<op::attention_cached> && (k == 1 || k == 2)) bytes = std::int64_t(double(bytes) * cached);
    all += bytes;
    if (s.op == &info<op::embedding> ? k >= s.inputs : k < s.inputs && ((s.op->inout >> k) & 1) == 0) rows += bytes;
  }
  return s.op == &info<op::embedding> || s.op == &info<op::cache_append> ? 2 * rows : all;
}
/// The bandwidth for so many bytes: between both measurements, in proportion to the logarithm.
inline double stream(const calibration& c, double bytes) {
  const double small = c[quantity::stream_small].value, large = c[quantity::stream_large].value;
  constexpr double from = double(1 << 20), to = double(64 << 20);
  const double share = std::clamp(std::log(std::max(bytes, 1.0) / from) / std::log(to / from), 0.0, 1.0);
  return std::exp((1 - share) * std::log(small) + share * std::log(large));
}
}  // namespace calibrate_detail

/// What a plan does not say of its runs.
struct run_facts {
  std::int64_t micro_batches = 1;  // of a step of training
  std::int64_t launches = 0;       // of one run, as session.launches() counts them; 0: one for each step
  double cached = 1;               // the share of the positions of caches that hold tokens
};

/// The time of step s: that of its products or bytes, whichever takes longer, of functions on elements, and of its launch.
///
/// - products (gemm_operands) of up to 8 rows: bytes over rows, and over rows_8 with few_rows besides, in proportion to the rows;
/// - products of more rows: flops / product_large + what 512^3 took longer than that says;
/// - attention, and other ops that run products: flops / attention, and random numbers where it drops probabilities;
/// - attention to caches: flops / attention, or bytes / stream_large where `stream` says less, since other steps have put keys and values out of the caches;
/// - other steps: bytes / stream, with elements of gelu and the like, and of dropout, besides.
///
/// Nothing is predicted from a figure that there is not: the part is 0 then, and `from` says none.
///
/// @param cached  the share of the positions of caches that hold tokens
inline time_estimate estimate(const plan_view& p, const step& s, const calibration& c, double cached = 1) {
  namespace d = calibrate_detail;
  time_estimate r;
  r.flops = flops_of(p, s);
  if (s.op == &info<op::attention_cached>) r.flops = std::int64_t(double(r.flops) * cached);
  r.bytes = d::bytes_of(p, s, cached);
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
  if (s.op->gemm_operands > 0) {
    const operand& b = p.operands[std::size_t(s.operands + 1)];
    constexpr double small_flops = 2.0 * 512 * 512 * 512;
    constexpr double most_rows = 8;
    const double rows = elements / double(std::max<std::int64_t>(b.dims[-1], 1));
    if (rows <= most_rows) {
      const double share = std::max(rows - 1, 0.0) / (most_rows - 1);
      const double one = over(double(r.bytes), quantity::rows), eight = over(double(r.bytes), quantity::rows_8) + at(quantity::few_rows);
      bytes = (1 - share) * one + share * eight;
    } else
      products = over(double(r.flops), quantity::product_large) +
                 std::max(0.0, over(small_flops, quantity::product_small) - over(small_flops, quantity::product_large));
  } else if (s.op->runs_gemms || s.op == &info<op::attention_grad>) {
    const bool backward = s.op == &info<op::attention_grad>;
    products = over(double(r.flops), backward ? quantity::attention_grad : quantity::attention);
    if ((backward || s.op == &info<op::attention>) && s.op->draws(s.attr)) {
      const auto how = op::attention_constants::of(s.attr);
      const double width = double(y.dims[-1]) / double(how.heads + (backward && how.packed ? 2 * how.kv_heads : 0));
      functions += over(double(r.flops) / ((backward ? 10 : 4) * width), quantity::random);
    }
  } else if (s.op == &info<op::attention_cached>) {
    bytes = std::max(bytes, over(double(r.bytes), quantity::stream_large));
    products = over(double(r.flops), quantity::attention);
  } else if (s.body_size == 0) {
    const operand& x = p.operands[std::size_t(s.operands)];
    if (d::is_heavy(s.op)) functions += over(s.inputs > 0 ? double(x.dims.count()) : elements, quantity::heavy);
    if (s.op->draws(s.attr)) functions += over(elements, quantity::random);
  }
  for (int k = 0; k < s.body_size; ++k)
    if (d::is_heavy(p.micro_ops[std::size_t(s.body + k)].op)) functions += over(elements, quantity::heavy);
  r.parts[std::size_t(products > bytes ? bound::matrix_rate : bound::bandwidth)] = std::max(products, bytes);
  r.parts[std::size_t(bound::functions)] = functions;
  r.parts[std::size_t(bound::launch)] = at(quantity::launch) + at(quantity::barrier);
  return r;
}

/// What a step takes that shares a launch with another one, as a share of a launch and its wait: its blocks wait for each other, too. Decoding of GPT-2 124M as one
/// launch of 100 steps took 137 us on an H200 by one backend and 257 us by the other; without this share 126 and 168 were predicted.
inline constexpr double inner_step = 0.2;

/// The time of a step of training or of a run from its start to its end.
inline time_estimate estimate(const plan_view& p, const calibration& c, const run_facts& facts = {}) {
  time_estimate sum;
  const std::int64_t n = facts.micro_batches;
  for (const step& s : p.steps) {
    const auto runs = [&](int active) { return (s.phases & active) != 0 ? 1 : 0; };
    const std::int64_t last = runs((n == 1 ? phase_first : phase_later) | phase_last);
    const std::int64_t before = n == 1 ? 0 : runs(phase_first) + (n - 2) * runs(phase_later);
    sum.add(estimate(p, s, c, facts.cached), double(before + last));
  }
  if (facts.launches > 0 && !p.steps.empty()) {
    const auto steps = double(p.steps.size()), launches = double(facts.launches);
    sum.parts[std::size_t(bound::launch)] *= (launches + inner_step * std::max(0.0, steps - launches)) / steps;
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
