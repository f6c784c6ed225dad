#pragma once
/// Finds where the first NaN or infinity of a step was written.
#include <isotope/core/error.hpp>
#include <isotope/plan/report/to_text.hpp>
#include <isotope/train/observed_step.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace isotope::train {

struct non_finite_node {
  std::size_t micro_batch = 0, step = 0;  // step: of the plan
  int output = 0;
  std::int64_t element = 0, count = 0;  // index of the first in row-major order, and their number
  float value = 0;
  std::string bad_parameters;  // parameters read by the step that already hold such a number
};

namespace detail {

inline std::optional<std::size_t> first_non_finite(std::span<const float> v) {
  for (std::size_t i = 0; i < v.size(); ++i)
    if (!std::isfinite(v[i])) return i;
  return std::nullopt;
}

template <class S> std::string bad_parameters_of(const S& session, std::size_t i) {
  const plan_view& p = session.plan();
  std::string names;
  for (int k = 0; k < p.steps[i].inputs; ++k) {
    const operand& o = p.operands[std::size_t(p.steps[i].operands + k)];
    if (o.region != value_kind::param) continue;
    const auto values = session.numbers(o);
    if (!values || !first_non_finite(*values)) continue;
    for (const auto& slot : p.slots)
      if (const auto at = slot.at * size_of(o.type); at <= o.at && o.at < at + slot.dims.count() * size_of(o.type))
        names += (names.empty() ? "" : ", ") + std::string(slot.path.view());
  }
  return names;
}

}  // namespace detail

/// Runs one optimizer step, which may repeat a skipped one: that one changed nothing, and its random numbers are the same. With
/// update_policy::within_backward a skipped step did change something if its loss was finite; then the result is where the repeated step goes wrong.
///
/// @return none if every number was finite
/// @error as put and numbers
template <ObservableSession S>
result<std::optional<non_finite_node>> find_non_finite(S& session, std::span<const batch> batches, const step_scalars& x) {
  std::optional<non_finite_node> found;
  std::optional<failure> broken;
  auto report = observed_step(session, batches, x, [&](std::size_t micro_batch, std::size_t i) {
    const plan_view& p = session.plan();
    for (int k = 0; k < p.steps[i].outputs && !found && !broken; ++k) {
      auto values = session.numbers(p.operands[std::size_t(p.steps[i].operands + p.steps[i].inputs + k)]);
      if (!values) {
        broken = std::move(values).error();
        return;
      }
      const auto first = detail::first_non_finite(*values);
      if (!first) continue;
      non_finite_node n{micro_batch, i, k, std::int64_t(*first), 0, (*values)[*first], detail::bad_parameters_of(session, i)};
      for (const float v : *values) n.count += std::isfinite(v) ? 0 : 1;
      found = std::move(n);
    }
  });
  if (!report) return report.error();
  if (broken) return *broken;
  return found;
}

/// "plan step 12, matmul add+gelu_tanh, output 0 [2,64] f32: 3 of 128 numbers, the first nan at element 5; reads h.0.mlp.c_fc.weight, ..."
inline std::string text_of(const non_finite_node& n, const plan_view& p) {
  const step& s = p.steps[n.step];
  const operand& o = p.operands[std::size_t(s.operands + s.inputs + n.output)];
  std::string r = "plan step " + std::to_string(n.step) + ", " + step_to_text(p, n.step) + ", output " + std::to_string(n.output) + " " +
                  to_text(o.dims) + " " + std::string(name_of(o.type)) + ": " + std::to_string(n.count) + " of " +
                  std::to_string(o.dims.count()) + " numbers, the first " +
                  (std::isnan(n.value) ? "nan"
                   : n.value > 0       ? "inf"
                                       : "-inf") +
                  " at element " + std::to_string(n.element);
  if (n.micro_batch > 0) r += ", in micro-batch " + std::to_string(n.micro_batch);
  if (!n.bad_parameters.empty()) return r + "; already not finite: " + n.bad_parameters;
  const std::string near = parameters_near(p, n.step);
  return near.empty() ? r : r + "; near " + near;
}

}  // namespace isotope::train
