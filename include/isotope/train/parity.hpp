#pragma once
/// Compares two sessions of one plan with the same seed and batches: do losses and gradients agree, and if not, from which step of the plan on?
#include <isotope/core/error.hpp>
#include <isotope/core/step.hpp>
#include <isotope/plan/report/to_text.hpp>
#include <isotope/train/batch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace isotope::train {

/// How far b may differ from a, relative to a.
struct parity_gate {
  double loss = 1e-4, norm = 1e-3;
  double value = 1e-3;  // relative L2 distance of what one step of the plan wrote
};
/// In f32 only the summation order differs; in bf16 also roundings to 8 bits.
constexpr parity_gate gate_of(dtype program) { return program == dtype::bf16 ? parity_gate{2e-2, 2e-2, 5e-2} : parity_gate{}; }

struct parity_step {
  std::int64_t step = 0;
  double loss_a = 0, loss_b = 0, norm_a = 0, norm_b = 0;
  static double relative_difference(double a, double b) { return std::abs(a - b) / std::max(std::abs(a), 1e-30); }
  double loss_difference() const { return relative_difference(loss_a, loss_b); }
  double norm_difference() const { return relative_difference(norm_a, norm_b); }
  bool within(const parity_gate& g) const { return loss_difference() <= g.loss && norm_difference() <= g.norm; }  // NaN fails
};

/// The first step of the plan whose outputs differ by more than the gate allows.
struct divergence {
  std::size_t step = 0;  // of the plan
  std::string op, shape;
  int output = 0;
  double difference = 0;    // |a - b| / |a|, L2 over the output
  double worst_before = 0;  // the largest difference among earlier steps
  std::string near;         // parameters that the step reads, or those read last before it
};

template <class A, class B> class parity {
 public:
  parity(A& a, B& b, const parity_gate& gate) : a_(a), b_(b), gate_(gate) {}

  /// Both plans must have the same steps. @error model_mismatch with the first step that differs
  result<void> same_plans() const {
    const auto &p = a_.plan(), &q = b_.plan();
    const std::size_t n = std::min(p.steps.size(), q.steps.size());
    for (std::size_t i = 0; i < n; ++i)
      if (p.steps[i].op != q.steps[i].op)
        return fail(errc::model_mismatch,
                    "step " + std::to_string(i) + " is " + std::string(p.steps[i].op->name) + " in one plan and " +
                        std::string(q.steps[i].op->name) + " in the other",
                    "parity", "plan both with the same kernel set and options");
    if (p.steps.size() == q.steps.size()) return {};
    return fail(errc::model_mismatch, std::to_string(p.steps.size()) + " steps against " + std::to_string(q.steps.size()), "parity",
                "plan both with the same kernel set and options");
  }

  parity_step step(const batch& data, const step_scalars& x) {
    const auto r = a_.step(std::span<const batch>(&data, 1), x), s = b_.step(std::span<const batch>(&data, 1), x);
    return {x.optimizer_step, r.loss, s.loss, r.grad_norm, s.grad_norm};
  }

  /// Copies parameters and moments from a to b. @error as read and write
  result<void> copy_state() {
    std::vector<float> x;
    for (std::size_t k = 0; k < a_.parameters().size(); ++k)
      for (const auto kind : {tensor_kind::parameter, tensor_kind::moment1, tensor_kind::moment2}) {
        x.resize(std::size_t(a_.parameters()[k].dims.count()));
        if (auto r = a_.read(kind, k, x); !r) {
          if (kind == tensor_kind::moment2 && r.error().code == errc::not_found) continue;
          return r;
        }
        if (auto r = b_.write(kind, k, x); !r) return r;
      }
    return {};
  }

  /// Runs one step on both from the same state, one plan step at a time. @error as copy_state and numbers
  result<std::optional<divergence>> locate(const batch& data, const step_scalars& x) {
    if (auto r = copy_state(); !r) return r.error();
    if (auto r = a_.put(data); !r) return r.error();
    if (auto r = b_.put(data); !r) return r.error();
    std::vector<std::vector<float>> kept;
    std::optional<failure> broken;
    const auto each_output = [](const plan_view& p, std::size_t i, auto&& visit) {
      const isotope::step& s = p.steps[i];
      for (int k = 0; k < s.outputs; ++k) visit(k, p.operands[std::size_t(s.operands + s.inputs + k)]);
    };
    a_.observe(x, [&](std::size_t i) {
      each_output(a_.plan(), i, [&](int, const operand& o) {
        auto v = a_.numbers(o);
        if (!v && !broken) broken = v.error();
        kept.push_back(v ? *std::move(v) : std::vector<float>{});
      });
    });
    std::optional<divergence> found;
    std::size_t at = 0;
    double worst = 0;
    b_.observe(x, [&](std::size_t i) {
      each_output(b_.plan(), i, [&](int k, const operand& o) {
        const auto& wanted = kept[std::min(at++, kept.size() - 1)];
        if (found) return;
        auto v = b_.numbers(o);
        if (!v) {
          if (!broken) broken = v.error();
          return;
        }
        const double difference = distance(wanted, *v);
        if (difference <= gate_.value) {
          worst = std::max(worst, difference);
          return;
        }
        found =
            divergence{i, std::string(b_.plan().steps[i].op->name), to_text(o.dims), k, difference, worst, parameters_near(b_.plan(), i)};
      });
    });
    if (broken) return *broken;
    return found;
  }

 private:
  A& a_;
  B& b_;
  parity_gate gate_;

  /// Returns |x - y| / |x|: 0 if both are all zeros, infinite if only one has NaN.
  static double distance(std::span<const float> x, std::span<const float> y) {
    if (x.size() != y.size()) return std::numeric_limits<double>::infinity();
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(x[i]) && std::isnan(y[i])) continue;
      if (x[i] == y[i]) {
        if (std::isfinite(x[i])) size += double(x[i]) * double(x[i]);
        continue;
      }
      const double d = double(x[i]) - double(y[i]);
      if (!std::isfinite(d)) return std::numeric_limits<double>::infinity();
      difference += d * d;
      size += double(x[i]) * double(x[i]);
    }
    return difference == 0 ? 0 : std::sqrt(difference / std::max(size, 1e-60));
  }
};

}  // namespace isotope::train
