#pragma once
/// From model source to plan: `training` and `inference`, planned by the compiler. plan/dynamic.hpp does the same at run time.
#include <cstdint>

#include "../core/graph.hpp"
#include "../core/scope.hpp"
#include "column_sums.hpp"
#include "diagnose.hpp"
#include "differentiate.hpp"
#include "distribute.hpp"
#include "fuse.hpp"
#include "kernels.hpp"
#include "layout.hpp"
#include "optimizer.hpp"
#include "packed_weights.hpp"
#include "pad_rows.hpp"
#include "plan.hpp"
#include "simplify.hpp"
#include "verify.hpp"
#include "weight_storage.hpp"
#include "within_backward.hpp"

namespace isotope {

namespace plan_detail {

/// Marks the nodes whose kernels might add up a row in another way where there are more or fewer rows.
constexpr void set_batch_invariant(trace& g) {
  for (node& n : g.nodes)
    if (!n.dead && n.rules->set_batch_invariant != nullptr) n.rules->set_batch_invariant(n.attr);
}
template <Target T> constexpr void lower(tape& t, bool fused, bool join_sums) {
  if (!t.ok()) return;
  fuse(t.g, fused, epilogues_of(kernel_table<T>, t.program()));
  if (fused && join_sums) join_column_sums(t.g, kernel_table<T>);
}
/// Differentiates a loss model, adds its optimiser and fuses it. `chunks`: in which the head is computed.
template <Target T, class Model>
constexpr trace trace_with_chunks(const Model& model, const training_options& o, std::int64_t chunks, bool verify) {
  graph<T> machine;
  machine.kernels = kernel_table<T>;
  machine.decompose_all = o.decompose_all;
  machine.addends = o.fuse;
  const auto loss = model(scope<graph<T>>{&machine, {}});
  if (machine.ok() && loss.valid() && machine.g.values[std::size_t(machine.g.root(loss.id))].kind != value_kind::temp)
    machine.fail("the loss is a parameter, an input or a view of one: return what an op computes, such as mean", place::current());
  if (machine.ok() && !machine.g.states.empty() && o.recompute.which != recompute_policy::kind::none)
    machine.fail("a model with state cannot be recomputed: the state has changed by then", place::current());
  verify_after(machine, "recording", verify);
  regroup(machine, o.group);
  choose_matrices(machine, o.optimizer);
  if (o.mesh.tensor <= 1) pad_rows(machine, T::backend::row_multiple, loss.id);  // otherwise distribute pads the table's rows
  verify_after(machine, "pad_rows", verify);
  const std::size_t forward = machine.g.nodes.size();
  std::int32_t total = differentiate(machine, loss.id, o.recompute, chunks, o.mesh.data > 1 ? 1.0 / o.mesh.data : 1.0);
  verify_after(machine, "differentiate", verify);
  if (machine.ok()) total = simplify(machine.g, forward, total);
  verify_after(machine, "simplify", verify);
  total = distribute(machine, o, total, T::backend::row_multiple);
  verify_after(machine, "distribute", verify);
  if (o.update == update_policy::within_backward) {
    const auto first = append_updates(machine, total, o);
    verify_after(machine, "append_updates", verify);
    lower<T>(machine, o.fuse, o.join_sums);
    verify_after(machine, "fuse", verify);
    hoist_updates(machine, first);
    verify_after(machine, "hoist_updates", verify);
  } else {
    append_optimizer(machine, total, o);
    verify_after(machine, "append_optimizer", verify);
    lower<T>(machine, o.fuse, o.join_sums);
    verify_after(machine, "fuse", verify);
  }
  return static_cast<trace&&>(machine.g);
}
template <Target T> constexpr memory_layout lay_out_for(const trace& g) {
  if (!g.error.empty()) return {};  // not `?:`, whose operand g++ 12 destroys twice in constant expressions
  memory_layout l = lay_out(g, kernel_table<T>, T::backend::chunk_bytes);
  if constexpr (requires { T::backend::reuse_delay; })
    if (l.bytes[std::size_t(value_kind::temp)] <= T::backend::reuse_delay_limit)
      l = lay_out(g, kernel_table<T>, T::backend::chunk_bytes, T::backend::reuse_delay);
  return l;
}
template <Target T> constexpr std::int64_t planned_bytes(const trace& g) {
  std::int64_t bytes = 0;
  for (auto region : lay_out_for<T>(g).bytes) bytes += region;
  return bytes;
}
/// As trace_with_chunks, with the chunks that head_policy chooses. `verify`: the result of each pass is checked.
template <Target T, class Model>
constexpr trace trace_training(const Model& model, const training_options& o, bool verify = verifies_traces) {
  if (o.head.budget <= 0) return trace_with_chunks<T>(model, o, o.head.chunks, verify);
  trace best = trace_with_chunks<T>(model, o, 1, verify);
  std::int64_t bytes = planned_bytes<T>(best);
  for (const std::int64_t chunks : {2, 3, 4, 6, 8, 12, 16, 24, 32}) {
    if (!best.error.empty() || bytes <= o.head.budget) break;
    trace next = trace_with_chunks<T>(model, o, chunks, verify);
    if (next.obstacle != head_obstacle::none) return next;
    const std::int64_t smaller = planned_bytes<T>(next);
    if (smaller >= bytes) continue;
    best = static_cast<trace&&>(next);
    bytes = smaller;
  }
  return best;
}
/// Plans a forward model: no gradient, no optimiser state, nothing kept for a backward pass. `verify`: the result of each pass is checked. `batch_invariant`,
/// `a8`, `beside`, `pack`: as in plan_inference.
template <Target T, class Model>
constexpr trace trace_inference(const Model& model, bool fused, bool decompose_all = false, weight_storage stored = nullptr,
                                grouping group = nullptr, bool verify = verifies_traces, bool batch_invariant = false, bool a8 = false,
                                const training_options& beside = {}, bool pack = false) {
  graph<T> machine;
  machine.kernels = kernel_table<T>;
  machine.decompose_all = decompose_all;
  machine.training = false;
  auto y = model(scope<graph<T>>{&machine, {}});
  if (machine.ok() && !y.valid())
    machine.fail("the model returned an invalid tensor: return one that an op, a parameter or an input gave", place::current());
  if (machine.ok()) {
    regroup(machine, group);
    const auto& g = machine.g;
    if (g.values[std::size_t(y.id)].base >= 0 || g.values[std::size_t(y.id)].kind != value_kind::temp) y = contiguous(y);
    machine.g.values[std::size_t(y.id)].kind = value_kind::output;
    machine.g.outputs.push_back({name("output"), y.id});
    verify_after(machine, "recording", verify);
  }
  if (machine.ok()) {
    if (stored == nullptr && beside.mesh.tensor <= 1)
      pad_rows(machine, T::backend::row_multiple, y.id);  // weights stored narrower are read by matmuls alone
    verify_after(machine, "pad_rows", verify);
    simplify(machine.g, machine.g.nodes.size());
    verify_after(machine, "simplify", verify);
    if (const auto r = distribute(machine, beside, y.id, T::backend::row_multiple); r != y.id && machine.ok()) {
      if (machine.g.root(r) != machine.g.root(y.id)) machine.g.values[std::size_t(y.id)].kind = value_kind::temp;
      machine.g.values[std::size_t(machine.g.root(r))].kind = value_kind::output;
      machine.g.outputs[0].value = r;
    }
    verify_after(machine, "distribute", verify);
    if (!machine.ok()) return static_cast<trace&&>(machine.g);
    prune(machine.g);
    store_weights(machine, stored, kernel_table<T>, T::backend::name);
    verify_after(machine, "store_weights", verify);
    if (batch_invariant) set_batch_invariant(machine.g);  // before weights are packed: it decides what is
    if (a8) round_activations(machine);                   // likewise
    if (pack) pack_transposed_weights(machine);
    verify_after(machine, "pack_transposed_weights", verify);
    gather_params(machine);
    verify_after(machine, "gather_params", verify);
  }
  lower<T>(machine, fused, true);
  verify_after(machine, "fuse", verify);
  return static_cast<trace&&>(machine.g);
}

/// Table sizes that hold most models. A constant cannot keep a vector, so tables need a size before their contents are known: with spare room, one
/// evaluation of the model fills them, where measuring first takes two.
inline constexpr plan_sizes default_capacity{
    .steps = 640, .operands = 2560, .micro_ops = 320, .slots = 320, .inputs = 8, .outputs = 8, .states = 8};

template <plan_sizes Room> struct draft {
  plan<Room> tables;
  plan_sizes used;  // if larger than Room, the tables are empty
};
template <plan_sizes Room, class Make, Target T> constexpr draft<Room> draw() {
  const trace g = Make{}();
  draft<Room> d;
  d.used = measure(g);
  if (fits(d.used, Room)) freeze_into(d.tables, g, lay_out_for<T>(g));
  return d;
}
/// This is not a local of `make_static`, because clang would evaluate it again there.
template <class Make, Target T> inline constexpr auto first_draft = draw<default_capacity, Make, T>();
template <class Make, Target T> constexpr auto make_static() {
  constexpr plan_sizes s = first_draft<Make, T>.used;
  if constexpr (fits(s, default_capacity)) return cut<s>(first_draft<Make, T>.tables);
  else return draw<s, Make, T>().tables;
}
}  // namespace plan_detail

/// Turns the diagnoses of a static plan into compile errors.
template <const auto& Plan, Target T, std::int64_t Budget> struct checked {
  static constexpr message model = Plan.error;
  static constexpr message kernel = missing_kernel(Plan, T::backend::name, kernel_table<T>, all_kernels<typename T::backend>);
  static constexpr message memory = over_budget(Plan, Budget);
  static constexpr message tensors = over_tensor_limit(Plan, T::backend::name, T::backend::tensor_bytes);
  static_assert(sizeof(report<diagnosis<model>>) > 0);
  static_assert(sizeof(report<diagnosis<kernel>>) > 0);
  static_assert(sizeof(report<diagnosis<memory>>) > 0);
  static_assert(sizeof(report<diagnosis<tensors>>) > 0);
  static constexpr bool ok = true;
};

/// A training step of a loss model, planned by the compiler. Errors of the model, missing kernels and an exceeded budget (bytes; 0: none) are compile
/// errors. Name a program in only one translation unit; others take a `plan_view`.
template <class Model, Target T, training_options Options = training_options{}, std::int64_t Budget = 0> struct training {
  using target = T;
  struct make {
    constexpr trace operator()() const { return plan_detail::trace_training<T>(Model{}, Options); }
  };
  static constexpr auto plan = plan_detail::make_static<make, T>();
  static_assert(checked<plan, T, Budget>::ok);
  static constexpr std::int64_t bytes = plan.totals.bytes;
  static constexpr std::int64_t parameters = plan.totals.parameters;
  static constexpr plan_view view() { return plan; }
  /// Returns where the gradient of a parameter starts, in elements of the gradient region. -1: there is no such parameter, it is frozen, or its
  /// gradient does not outlive its update (update_policy::within_backward).
  static constexpr std::int64_t gradient(std::string_view path) {
    for (const auto& s : plan.slots)
      if (s.path.view() == path) return s.grad;
    return -1;
  }
};

/// The forward pass of a model, planned by the compiler: parameters and activations only. `Stored` is the format of weights, such as weights::f16.
template <class Model, Target T, std::int64_t Budget = 0, weight_storage Stored = nullptr> struct inference {
  using target = T;
  struct make {
    constexpr trace operator()() const { return plan_detail::trace_inference<T>(Model{}, true, false, Stored); }
  };
  static constexpr auto plan = plan_detail::make_static<make, T>();
  static_assert(checked<plan, T, Budget>::ok);
  static constexpr std::int64_t bytes = plan.totals.bytes;
  static constexpr std::int64_t parameters = plan.totals.parameters;
  static constexpr plan_view view() { return plan; }
  /// Does not compile: an inference program has no gradient.
  template <class Asked = T> static constexpr std::int64_t gradient(std::string_view) {
    static_assert(sizeof(Asked) == 0, "an inference program keeps no gradients: plan a loss with isotope::training");
    return -1;
  }
};

}  // namespace isotope
