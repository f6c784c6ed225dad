#pragma once
/// The finished plan: flat tables, which are all that an executor sees.
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "../core/trace.hpp"
#include "layout.hpp"

namespace isotope {

/// A tensor of a step: it starts `at` bytes into its region and has `bytes` from the first element to the last. Late sizes count with their limits, and
/// `late` says where it lies for other sizes: late_operand::at.
struct operand {
  std::int64_t at = 0, bytes = 0;
  std::int64_t rank_stride = 0;  // bytes that `at` grows by with each data index, before the plan is that of a rank (plan/local_plan.hpp)
  shape dims;
  extents strides{};
  dtype type = dtype::f32;
  value_kind region = value_kind::temp;
  std::int32_t late = -1;  // entry of plan_view::late; -1: it lies at the same place for all sizes
};
/// The place of an operand as a function of late sizes: its root starts `at` bytes into the region.
struct late_operand {
  std::int64_t at = 0;
  late_layout layout;
};

/// One launch. Its operands start at `operands` in plan_view::operands: inputs, then outputs.
struct step {
  const op_info* op = nullptr;
  attributes attr;
  std::int64_t scratch = -1, scratch_bytes = 0;  // in the temporary region
  std::int32_t kernel = -1;                      // index into the target's kernel table
  std::int32_t operands = 0, body = 0, block = -1;
  std::uint32_t ordinal = 0;
  std::uint8_t inputs = 0, outputs = 0, body_size = 0;
  std::uint8_t phases = phase_always, accumulate = 0, adds = 0;
  std::int8_t summed = -1;  // the output whose column sums are the last output; -1: none is
  bool decomposed = false;  // stands for part of a decomposed op
  /// The outputs without the column sums.
  constexpr std::uint8_t results() const { return std::uint8_t(outputs - (summed < 0 ? 0 : 1)); }
  /// Bit k: output k is added to where these phases are active.
  constexpr std::uint8_t added(std::uint8_t active) const { return std::uint8_t(adds | ((active & phase_first) != 0 ? 0 : accumulate)); }
};

/// How the devices of a tensor group divide a slot. A slot that no axis divides is whole on each.
struct shard {
  axis_split along{};
  std::int32_t parts = 1;
  constexpr bool divides() const { return along.divides() && parts > 1; }
  /// The shape of all pieces together, of a slot of which a device has `local`.
  constexpr shape whole(shape local) const {
    if (divides()) local.set(along.axis, along.size());
    return local;
  }
};
/// One parameter: the state dict. `dims` are those on one device. `at` and `grad` count elements from the start of the parameter and gradient regions; `at` also holds in the master
/// region and for the first moment. `type` is the format of the parameter region; inference programs may store weights narrower.
struct slot {
  name path;
  shape dims;
  std::int64_t at = 0;
  std::int64_t grad = -1;    // -1: frozen, or not kept (update_policy::within_backward)
  std::int64_t packed = -1;  // bytes from the start of the packed region; -1: it has no packed copy
  initializer init;
  shard pieces;
  bool decay = true;
  dtype type = dtype::f32;
  bool trained = false;                // whether it has moments, if the optimiser has any
  std::int64_t moment2 = -1;           // elements from the start of the optimiser's state; -1: it has no second moment
  std::int64_t packed_transposed = 0;  // elements of the packed copy, if it is for products with its transpose
};
/// An input, an output or a state by name.
struct port {
  name label;
  operand where;
};

struct plan_sizes {
  std::size_t steps = 0, operands = 0, micro_ops = 0, slots = 0, inputs = 0, outputs = 0, states = 0, late = 0;
};

/// Facts about a plan that are not in its tables.
struct plan_totals {
  std::array<std::int64_t, value_kinds> region{};  // bytes
  std::int64_t bytes = 0;                          // of the arena: the sum of the regions
  std::int64_t lower_bound = 0;                    // most bytes of temporaries alive at once
  std::int64_t parameters = 0;                     // numbers in all slots
  std::int64_t trained = 0;                        // elements of the gradient region
  std::uint8_t moments = 0;                        // most moments that a parameter has
  dtype program = dtype::f32;
  std::int32_t head_chunks = 1;  // chunks of rows in which the head is computed (plan/head_policy.hpp)
  head_obstacle obstacle = head_obstacle::none;
  device_mesh mesh{};           // of the devices that run the plan together
  bool shards_updates = false;  // masters and moments are those of one data index (ZeRO-1)
};

/// Spans over a plan, whether static or made at run time.
struct plan_view {
  std::span<const step> steps;
  std::span<const operand> operands;
  std::span<const micro_op> micro_ops;
  std::span<const slot> slots;
  std::span<const port> inputs, outputs, states;
  plan_totals totals;
  message error;
  std::span<const late_operand> late;
};

/// A plan as a constant: its sizes are fixed, and it has no pointers except to op descriptions.
template <plan_sizes S> struct plan {
  std::array<step, S.steps> steps{};
  std::array<operand, S.operands> operands{};
  std::array<micro_op, S.micro_ops> micro_ops{};
  std::array<slot, S.slots> slots{};
  std::array<port, S.inputs> inputs{};
  std::array<port, S.outputs> outputs{};
  std::array<port, S.states> states{};
  std::array<late_operand, S.late> late{};
  plan_totals totals;
  message error;
  constexpr operator plan_view() const { return {steps, operands, micro_ops, slots, inputs, outputs, states, totals, error, late}; }
};

namespace plan_detail {

constexpr operand operand_of(const trace& g, const memory_layout& l, std::int32_t v) {
  const value& x = g.values[std::size_t(v)];
  const std::int32_t root = g.root(v);
  const auto size = size_of(x.type);
  operand r;
  r.dims = x.dims;
  r.strides = x.strides;
  r.type = x.type;
  r.region = g.values[std::size_t(root)].kind;
  r.at = l.at[std::size_t(root)] + g.root_offset(v) * size;
  if (g.mesh.data > 1) r.rank_stride = g.root_rank_stride(v) * size;
  std::int64_t span = x.dims.count() == 0 ? 0 : 1;
  for (int i = 0; i < x.dims.rank && span > 0; ++i) span += (x.dims[i] - 1) * x.strides[std::size_t(i)];
  r.bytes = in_blocks(x.type) ? quantized::bytes_of(x.type, x.dims, x.strides) : span * size;
  return r;
}
/// An operand of a fused body: it has the dimensions of the output, with strides 0 along axes that broadcast.
constexpr void repeat_to(operand& x, const shape& y) {
  extents strides{};
  for (int i = 0; i < y.rank; ++i) {
    const int k = i - (y.rank - x.dims.rank);
    strides[std::size_t(i)] = k < 0 || (x.dims[k] == 1 && y[i] != 1) ? 0 : x.strides[std::size_t(k)];
  }
  x.dims = y;
  x.strides = strides;
}

/// The layout of v in its root.
constexpr late_layout layout_in_root(const trace& g, std::int32_t v) {
  late_layout r = g.layout_of(v);
  while ((v = g.values[std::size_t(v)].base) >= 0)
    for (const auto& x : g.layout_of(v).offset) r.move(x);
  return r;
}
/// As the other one.
constexpr void repeat_to(late_layout& l, const shape& x, const shape& y) {
  const auto from = l.strides;
  l.strides = {};
  for (int i = 0; i < y.rank; ++i)
    if (const int k = i - (y.rank - x.rank); k >= 0 && (x[k] != 1 || y[i] == 1)) l.strides[std::size_t(i)] = from[std::size_t(k)];
}

template <class Plan> constexpr void fill_tables(const trace& g, const memory_layout& l, Plan& p) {
  std::size_t s = 0, o = 0, m = 0, late = 0;
  const auto look = [&](std::int32_t v, bool repeats, const shape& y) {
    if (g.late.empty()) return;
    late_operand x{l.at[std::size_t(g.root(v))], layout_in_root(g, v)};
    if (!x.layout.late()) return;
    if (repeats) repeat_to(x.layout, g.values[std::size_t(v)].dims, y);
    p.operands[o].late = std::int32_t(late);
    p.late[late++] = x;
  };
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    const node& n = g.nodes[i];
    if (n.dead || n.op->kind == op_kind::view) continue;
    step& t = p.steps[s++];
    t.op = n.op;
    t.attr = n.attr;
    t.scratch = l.scratch[i];
    t.scratch_bytes = l.scratch_bytes[i];
    t.kernel = l.kernel[i];
    t.operands = std::int32_t(o);
    t.body = std::int32_t(m);
    t.block = n.block;
    t.ordinal = n.ordinal;
    t.inputs = std::uint8_t(n.inputs());
    t.outputs = std::uint8_t(n.outputs());
    t.body_size = std::uint8_t(n.body_size);
    t.phases = n.phases;
    t.accumulate = n.accumulate;
    t.adds = n.adds;
    t.summed = n.summed;
    t.decomposed = n.decomposed;
    const int own = n.body_size == 0 ? n.inputs() : n.op->host_operands(n.attr);
    for (int k = 0; k < n.inputs(); ++k) {
      const shape& y = g.values[std::size_t(n.out[0])].dims;
      p.operands[o] = operand_of(g, l, n.in[std::size_t(k)]);
      look(n.in[std::size_t(k)], k >= own, y);
      if (k >= own) repeat_to(p.operands[o], y);
      ++o;
    }
    for (int k = 0; k < n.outputs(); ++k) {
      p.operands[o] = operand_of(g, l, n.out[std::size_t(k)]);
      look(n.out[std::size_t(k)], false, {});
      ++o;
    }
    for (std::int32_t k = 0; k < n.body_size; ++k) p.micro_ops[m++] = g.micro_ops[std::size_t(n.body + k)];
  }
  std::int64_t seconds = 0;  // bytes before the second moments
  for (std::size_t v = 0; v < g.values.size(); ++v)
    if (g.values[v].base < 0 && g.values[v].kind == value_kind::moment) seconds = l.at[v];
  for (std::size_t k = 0; k < g.params.size(); ++k) {
    const parameter& q = g.params[k];
    slot& t = p.slots[k];
    t.path = q.path;
    t.dims = g.values[std::size_t(q.value)].dims;
    t.type = g.values[std::size_t(q.value)].type;
    t.at = l.at[std::size_t(g.root(q.value))] / size_of(t.type) + g.root_offset(q.value);
    t.grad = q.trainable && p.totals.trained > 0 ? t.at : -1;
    if (q.packed >= 0) t.packed = l.at[std::size_t(q.packed)];
    t.packed_transposed = q.packed_transposed ? g.values[std::size_t(q.packed)].dims[0] : 0;
    t.trained = q.trainable && (p.totals.trained > 0 || p.totals.moments > 0);
    if (q.second >= 0) t.moment2 = seconds / size_of(accum_of(g.program)) + q.second;
    t.init = q.init;
    if (g.mesh.tensor > 1 && q.split.divides()) t.pieces = {q.split, g.mesh.tensor};
    t.decay = q.decay;
  }
  for (std::size_t k = 0; k < g.inputs.size(); ++k) p.inputs[k] = {g.inputs[k].label, operand_of(g, l, g.inputs[k].value)};
  for (std::size_t k = 0; k < g.outputs.size(); ++k) p.outputs[k] = {g.outputs[k].label, operand_of(g, l, g.outputs[k].value)};
  for (std::size_t k = 0; k < g.states.size(); ++k) p.states[k] = {g.states[k].label, operand_of(g, l, g.states[k].value)};
}

constexpr plan_totals totals_of(const trace& g, const memory_layout& l) {
  plan_totals t;
  t.region = l.bytes;
  for (auto b : l.bytes) t.bytes += b;
  t.lower_bound = l.lower_bound;
  t.program = g.program;
  t.head_chunks = g.head_chunks;
  t.obstacle = g.obstacle;
  t.mesh = g.mesh;
  t.shards_updates = g.shards_updates;
  for (const auto& p : g.params) t.parameters += g.values[std::size_t(p.value)].dims.count();
  for (const auto& v : g.values) {
    if (v.base < 0 && v.kind == value_kind::grad) t.trained = v.dims.count();
    t.moments = std::uint8_t(t.moments + (v.base < 0 && v.kind == value_kind::moment ? 1 : 0));
  }
  return t;
}
}  // namespace plan_detail

/// Returns the table sizes of a laid-out graph; zeros if it has an error.
constexpr plan_sizes measure(const trace& g) {
  plan_sizes s;
  if (!g.error.empty()) return s;
  s.slots = g.params.size();
  s.inputs = g.inputs.size();
  s.outputs = g.outputs.size();
  s.states = g.states.size();
  for (const auto& n : g.nodes)
    if (!n.dead && n.op->kind != op_kind::view) {
      ++s.steps;
      s.operands += std::size_t(n.inputs() + n.outputs());
      s.micro_ops += std::size_t(n.body_size);
      if (g.late.empty()) continue;
      for (int k = 0; k < n.inputs(); ++k) s.late += std::size_t(plan_detail::layout_in_root(g, n.in[std::size_t(k)]).late());
      for (int k = 0; k < n.outputs(); ++k) s.late += std::size_t(plan_detail::layout_in_root(g, n.out[std::size_t(k)]).late());
    }
  return s;
}
constexpr bool fits(const plan_sizes& s, const plan_sizes& room) {
  return s.steps <= room.steps && s.operands <= room.operands && s.micro_ops <= room.micro_ops && s.slots <= room.slots &&
         s.inputs <= room.inputs && s.outputs <= room.outputs && s.states <= room.states && s.late <= room.late;
}
/// Fills the tables of a plan that has room for them, and its facts.
template <class Plan> constexpr void freeze_into(Plan& p, const trace& g, const memory_layout& l) {
  p.error = g.error;
  if (!g.error.empty()) return;
  p.totals = plan_detail::totals_of(g, l);
  plan_detail::fill_tables(g, l, p);
}
/// Returns a plan without the unused ends of its tables.
template <plan_sizes S, plan_sizes Room> constexpr plan<S> cut(const plan<Room>& from) {
  plan<S> p;
  p.totals = from.totals;
  p.error = from.error;
  const auto copy = [](const auto& x, auto& y) {
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = x[i];
  };
  copy(from.steps, p.steps);
  copy(from.operands, p.operands);
  copy(from.micro_ops, p.micro_ops);
  copy(from.slots, p.slots);
  copy(from.inputs, p.inputs);
  copy(from.outputs, p.outputs);
  copy(from.states, p.states);
  copy(from.late, p.late);
  return p;
}

}  // namespace isotope
