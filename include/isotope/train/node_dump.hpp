#pragma once
/// Summarises what every step of a plan wrote: dumps of one step from two machines or versions can be compared line by line.
#include <isotope/core/error.hpp>
#include <isotope/plan/report/to_text.hpp>
#include <isotope/train/decimal.hpp>
#include <isotope/train/observed_step.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace isotope::train {

/// Summarises one output: the largest magnitude and the mean of its finite numbers, and how many are not finite.
struct node_figures {
  std::size_t micro_batch = 0, step = 0;
  int output = 0;
  double max_abs = 0, mean = 0;
  std::int64_t nans = 0, infinities = 0;
};

inline node_figures figures_of(std::span<const float> values) {
  node_figures f;
  double sum = 0;
  std::int64_t finite = 0;
  for (const float v : values) {
    if (std::isnan(v)) ++f.nans;
    else if (std::isinf(v)) ++f.infinities;
    else f.max_abs = std::max(f.max_abs, std::abs(double(v))), sum += double(v), ++finite;
  }
  f.mean = finite == 0 ? 0 : sum / double(finite);
  return f;
}

struct node_dump {
  std::vector<node_figures> nodes;
  step_report report;  // of the step, which counts like any other
};

/// Runs one optimizer step and reads every output of every step of the plan. @error as put and numbers
template <ObservableSession S> result<node_dump> dump_nodes(S& session, std::span<const batch> batches, const step_scalars& x) {
  node_dump dump;
  std::optional<failure> broken;
  auto report = observed_step(session, batches, x, [&](std::size_t micro_batch, std::size_t i) {
    const plan_view& p = session.plan();
    for (int k = 0; k < p.steps[i].outputs && !broken; ++k) {
      auto values = session.numbers(p.operands[std::size_t(p.steps[i].operands + p.steps[i].inputs + k)]);
      if (!values) {
        broken = std::move(values).error();
        return;
      }
      node_figures f = figures_of(*values);
      f.micro_batch = micro_batch, f.step = i, f.output = k;
      dump.nodes.push_back(f);
    }
  });
  if (!report) return report.error();
  if (broken) return *broken;
  dump.report = *report;
  return dump;
}

/// The columns: micro-batch, step of the plan, op, fused body, output, shape, format, largest magnitude, mean, NaNs, infinities.
inline std::string text_of(const node_dump& d, const plan_view& p) {
  std::string r = "# micro-batch\tstep\top\tbody\toutput\tshape\tformat\tmax_abs\tmean\tnan\tinf\n";
  for (const node_figures& f : d.nodes) {
    const step& s = p.steps[f.step];
    const operand& o = p.operands[std::size_t(s.operands + s.inputs + f.output)];
    r += std::to_string(f.micro_batch) + '\t' + std::to_string(f.step) + '\t' + std::string(s.op->name) + '\t' + body_to_text(p, s) + '\t' +
         std::to_string(f.output) + '\t' + to_text(o.dims) + '\t' + std::string(name_of(o.type)) + '\t' + shortest(f.max_abs) + '\t' +
         shortest(f.mean) + '\t' + std::to_string(f.nans) + '\t' + std::to_string(f.infinities) + '\n';
  }
  return r + "# loss\t" + shortest(d.report.loss) + "\tgradient norm\t" + shortest(d.report.grad_norm) + '\n';
}

}  // namespace isotope::train
