#pragma once
/// Plans made at run time, by the functions that the compiler evaluates for static plans and with the same bits: for models read from a file and
/// sizes known late. It is a separate header because failure values and vectors would cost every reader of isotope.hpp compile time.
#include <cstdint>
#include <string>
#include <vector>

#include "../core/error.hpp"
#include "program.hpp"

namespace isotope {

/// A plan made at run time.
struct dynamic_plan {
  std::vector<step> steps;
  std::vector<operand> operands;
  std::vector<micro_op> micro_ops;
  std::vector<slot> slots;
  std::vector<port> inputs, outputs, states;
  std::vector<late_operand> late;
  plan_totals totals;
  message error;
  operator plan_view() const {
    return {table(steps),   table(operands), table(micro_ops), table(slots), table(inputs),
            table(outputs), table(states),   totals,           error,        table(late)};
  }

 private:  // span's constructor from a vector checks a dozen concepts per element type: 0.1 s in every translation unit
  template <class E> static constexpr std::span<const E> table(const std::vector<E>& v) { return {v.data(), v.size()}; }
};

/// Lays out a trace and returns it as a run-time plan.
inline dynamic_plan freeze(const trace& g, const memory_layout& l) {
  dynamic_plan p;
  const auto s = measure(g);
  p.steps.resize(s.steps);
  p.operands.resize(s.operands);
  p.micro_ops.resize(s.micro_ops);
  p.slots.resize(s.slots);
  p.inputs.resize(s.inputs);
  p.outputs.resize(s.outputs);
  p.states.resize(s.states);
  p.late.resize(s.late);
  freeze_into(p, g, l);
  return p;
}

namespace plan_detail {
/// @error invalid_model for a model that does not trace or a missing kernel, over_budget for a tensor beyond the backend's limit
template <Target T> result<void> runnable(const dynamic_plan& p) {
  const auto text = [](const message& m) { return std::string(m.view()); };
  if (!p.error.empty()) return diagnosed(errc::invalid_model, text(p.error));
  if (auto m = missing_kernel(p, T::backend::name, kernel_table<T>, all_kernels<typename T::backend>); !m.empty())
    return diagnosed(errc::invalid_model, text(m));
  if (auto m = over_tensor_limit(p, T::backend::name, T::backend::tensor_bytes); !m.empty()) return diagnosed(errc::over_budget, text(m));
  return {};
}
template <Target T> result<dynamic_plan> make_dynamic(const trace& g, std::int64_t budget) {
  auto p = freeze(g, lay_out_for<T>(g));
  if (auto r = runnable<T>(p); !r) return r.error();
  if (auto m = over_budget(p, budget); !m.empty()) return diagnosed(errc::over_budget, std::string(m.view()));
  return p;
}
}  // namespace plan_detail

/// As `training`, for a model whose sizes are known at run time.
/// @error what would have been a compile error, as one line
template <Target T, class Model>
result<dynamic_plan> plan_training(const Model& model, const training_options& o = {}, std::int64_t budget = 0) {
  return plan_detail::make_dynamic<T>(plan_detail::trace_training<T>(model, o), budget);
}
/// As `inference`, for a model whose sizes are known at run time.
/// @param group            that of the training plan beside which it evaluates; it orders the parameters
/// @param batch_invariant  a row of a result has the same bits in plans for any number of rows, where its operands have: kernels for few rows, of products and of attention, that add up in
///                         another order are not taken. Kernels of every backend heed it. Without it, it has the same bits in plans of the same sizes, whatever the other rows hold.
/// @param beside           the options of the training plan beside which it evaluates, for its mesh and the order of its parameters
/// @param a8               in f32 and bf16 programs, activations of products with weights in q8_0 or q4_0 are rounded to 8 bits, 32 along K at a time (quantized::round_activations)
/// @param pack             weights that products read have a second copy, in the order in which the target's kernels read them, where these want one (f32 on cpu, bf16 for AMX, a8 for AVX-512 VNNI without AMX):
///                         memory for time. Results keep their bits.
/// @error what would have been a compile error, as one line
template <Target T, class Model>
result<dynamic_plan> plan_inference(const Model& model, std::int64_t budget = 0, bool fused = true, bool decompose_all = false,
                                    weight_storage stored = nullptr, grouping group = nullptr, bool batch_invariant = false,
                                    bool a8 = false, const training_options& beside = {}, bool pack = false) {
  return plan_detail::make_dynamic<T>(
      plan_detail::trace_inference<T>(model, fused, decompose_all, stored, group, verifies_traces, batch_invariant, a8, beside, pack),
      budget);
}

/// Returns the trace that plan_training lays out, for reports: plan/report/trace.hpp, plan/report/fusion.hpp.
template <Target T, class Model> trace traced_training(const Model& model, const training_options& o = {}) {
  return plan_detail::trace_training<T>(model, o);
}
/// Returns the trace that plan_inference lays out, for reports.
template <Target T, class Model>
trace traced_inference(const Model& model, bool fused = true, bool decompose_all = false, weight_storage stored = nullptr,
                       bool a8 = false) {
  return plan_detail::trace_inference<T>(model, fused, decompose_all, stored, nullptr, verifies_traces, false, a8);
}

}  // namespace isotope
