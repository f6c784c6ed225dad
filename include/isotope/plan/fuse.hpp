#pragma once
/// Element-wise fusion: a producer whose outputs are first read by an element-wise op joins that op, as one step with a small body. A matmul takes
/// the body as its epilogue. Every intermediate keeps its own rounding, so fused and unfused results are equal bit for bit.
#include <cstdint>
#include <string_view>
#include <vector>

#include "../core/trace.hpp"
#include "../op/elementwise.hpp"
#include "kernels.hpp"

namespace isotope {

/// The reason why the producer of a value does not join the element-wise step that reads it.
enum class fusion_blocker : std::uint8_t {
  none,
  no_producer,
  through_view,
  not_elementwise,
  host_without_epilogue,
  outside_epilogues,
  phase,
  block,
  shape,
  output_shape,
  read_before,
  overwritten,
  kept,
  reordered,
  inputs,
  outputs,
  bare_gemm_kept,
  length,
};
constexpr std::string_view text_of(fusion_blocker b) {
  switch (b) {
    case fusion_blocker::none: return "could join";
    case fusion_blocker::no_producer: return "is a parameter, an input or a result of a later step";
    case fusion_blocker::through_view: return "is read through a view";
    case fusion_blocker::not_elementwise: return "comes from a kernel that takes no fused body";
    case fusion_blocker::host_without_epilogue: return "comes from a product that accumulates, or whose kernel takes no epilogue";
    case fusion_blocker::outside_epilogues: return "is a product, and the reader holds an op that no epilogue takes";
    case fusion_blocker::phase: return "is computed in other phases of the step";
    case fusion_blocker::block: return "is computed in another block";
    case fusion_blocker::shape: return "has another shape than the result";
    case fusion_blocker::output_shape: return "is a product, and the reader has an output of another shape";
    case fusion_blocker::read_before: return "is read by a step in between";
    case fusion_blocker::overwritten: return "reads what a step in between overwrites";
    case fusion_blocker::kept: return "is kept in memory of its own: a gradient, a parameter or an output";
    case fusion_blocker::reordered: return "is read a second time in another order";
    case fusion_blocker::inputs: return "would make more inputs than a step has";
    case fusion_blocker::outputs: return "would make more outputs than a step has";
    case fusion_blocker::bare_gemm_kept: return "is a product that others read too, and no instruction could store it";
    case fusion_blocker::length: return "would make a longer body than a step has";
  }
  return "";
}

namespace plan_detail {

class fusion {
 public:
  constexpr fusion(trace& g, const epilogue_rule& epilogues)
      : g_(g), epilogues_(epilogues), first_(g.values.size(), -1), last_(g.values.size(), -1) {}

  /// Gives every element-wise node a body of one instruction.
  constexpr void lower() {
    for (auto& n : g_.nodes) {
      if (n.dead || n.op->kind != op_kind::elementwise) continue;
      micro_op m;
      m.op = n.op;
      for (int k = 0; k < n.inputs() && k < 3; ++k) m.arg[std::size_t(k)] = std::int8_t(k);
      m.store = 0;
      m.type = g_.values[std::size_t(n.out[0])].type;
      m.scalar = n.attr.scalar();
      const op_rules* const by = n.rules;
      n.becomes(rules<op::elementwise>);
      n.body = std::int32_t(g_.micro_ops.size());
      n.body_size = 1;
      g_.add_instruction(m, by);
    }
  }

  constexpr void run() {
    find_readers();
    for (std::size_t i = 0; i < g_.nodes.size(); ++i) {
      if (!is_body(i)) continue;
      for (bool again = true; again;) {
        again = false;
        for (int k = 0; k < g_.nodes[i].inputs() && !again; ++k) again = join(i, g_.nodes[i].in[std::size_t(k)]);
        if (g_.nodes[i].op->body == body_role::host) break;  // a gemm takes no second host
      }
    }
  }

  /// Returns why the producer of v does not join node i, in a trace that `run` has left; call find_readers() first.
  constexpr fusion_blocker why(std::size_t i, std::int32_t v) {
    if (const auto met = blocker(i, v); met != fusion_blocker::none) return met;
    const node a = g_.nodes[std::size_t(g_.values[std::size_t(v)].producer)], b = g_.nodes[i];
    node f = b;
    const auto used = g_.micro_ops.size();
    const auto met = merge(a, b, i, is_host(a), f);
    while (g_.micro_ops.size() > used) g_.micro_ops.pop_back(), g_.micro_rules.pop_back();
    return met;
  }
  constexpr bool is_body(std::size_t i) const { return !g_.nodes[i].dead && g_.nodes[i].op->body == body_role::alone; }

  constexpr void find_readers() {
    writes_.clear();
    for (std::size_t i = 0; i < g_.nodes.size(); ++i) {
      const node& n = g_.nodes[i];
      if (n.dead || n.op->kind == op_kind::view) continue;
      for (int k = 0; k < n.inputs(); ++k) {
        note(g_.root(n.in[std::size_t(k)]), std::int32_t(i));
        if ((n.op->inout >> k) & 1) writes_.push_back({i, g_.root(n.in[std::size_t(k)])});
      }
      if (n.adds != 0) writes_.push_back({i, g_.root(n.out[0])});
      if (n.inputs() > 0 && n.effect && n.op->inout == 0 && g_.values[std::size_t(g_.root(n.out[0]))].kind == value_kind::state)
        writes_.push_back({i, g_.root(n.out[0])});
    }
    for (const auto& o : g_.outputs) last_[std::size_t(g_.root(o.value))] = std::int32_t(g_.nodes.size());
  }

 private:
  trace& g_;
  epilogue_rule epilogues_;
  std::vector<std::int32_t> first_, last_;  // first reader of each root, and the last
  struct write {
    std::size_t node;
    std::int32_t root;
  };
  std::vector<write> writes_;  // in-place writes, in the order of the nodes

  constexpr void note(std::int32_t root, std::int32_t reader) {
    if (first_[std::size_t(root)] < 0) first_[std::size_t(root)] = reader;
    if (last_[std::size_t(root)] < reader) last_[std::size_t(root)] = reader;
  }

  constexpr bool is_host(const node& a) const {
    return a.op->body == body_role::host && epilogues_.bodies && a.accumulate == 0 && a.adds == 0;
  }

  /// Returns why the producer of v cannot join node i, before the limits of a step are checked.
  constexpr fusion_blocker blocker(std::size_t i, std::int32_t v) const {
    const value& x = g_.values[std::size_t(v)];
    if (x.base >= 0) return fusion_blocker::through_view;
    if (x.producer < 0 || std::size_t(x.producer) >= i) return fusion_blocker::no_producer;
    const auto j = std::size_t(x.producer);
    const node& a = g_.nodes[j];
    const node& b = g_.nodes[i];
    const bool host = is_host(a);
    if (a.dead) return fusion_blocker::no_producer;
    if (!is_body(j) && !host)
      return a.op->body == body_role::host ? fusion_blocker::host_without_epilogue : fusion_blocker::not_elementwise;
    if (a.phases != b.phases) return fusion_blocker::phase;
    if (a.block != b.block) return fusion_blocker::block;
    if (!(x.dims == g_.values[std::size_t(b.out[0])].dims)) return fusion_blocker::shape;
    if (host)
      for (int k = 0; k < b.body_size; ++k)
        if (!epilogues_.takes(g_.micro_ops[std::size_t(b.body + k)].op)) return fusion_blocker::outside_epilogues;
    if (host)
      for (int k = 0; k < b.outputs(); ++k)
        if (!(g_.values[std::size_t(b.out[std::size_t(k)])].dims == x.dims)) return fusion_blocker::output_shape;
    for (int k = 0; k < a.outputs(); ++k) {  // all readers of the producer's results come after i
      const auto out = a.out[std::size_t(k)];
      if (first_[std::size_t(out)] >= 0 && first_[std::size_t(out)] < std::int32_t(i)) return fusion_blocker::read_before;
      if (g_.values[std::size_t(out)].base >= 0 || g_.values[std::size_t(out)].kind != value_kind::temp) return fusion_blocker::kept;
    }
    return overwritten_between(a, j, i) ? fusion_blocker::overwritten : fusion_blocker::none;
  }
  /// Whether a node between j and i writes in place what a, which is node j, reads: moved behind that node, a would read other numbers.
  constexpr bool overwritten_between(const node& a, std::size_t j, std::size_t i) const {
    std::size_t low = 0, high = writes_.size();
    while (low < high) {
      const auto middle = low + (high - low) / 2;
      if (writes_[middle].node <= j) low = middle + 1;
      else high = middle;
    }
    for (; low < writes_.size() && writes_[low].node < i; ++low)
      for (int k = 0; k < a.inputs(); ++k)
        if (g_.root(a.in[std::size_t(k)]) == writes_[low].root) return true;
    return false;
  }

  /// Lets the producer of v join node i; returns whether it did.
  constexpr bool join(std::size_t i, std::int32_t v) {
    if (blocker(i, v) != fusion_blocker::none) return false;
    const auto j = std::size_t(g_.values[std::size_t(v)].producer);
    const node& a = g_.nodes[j];
    const node b = g_.nodes[i];
    const bool host = is_host(a);
    node f = host ? a : b;
    if (merge(a, b, i, host, f) != fusion_blocker::none) return false;
    g_.nodes[j].dead = true;
    g_.nodes[i] = f;
    for (int k = 0; k < f.outputs(); ++k) g_.values[std::size_t(f.out[std::size_t(k)])].producer = std::int32_t(i);
    for (int k = 0; k < a.inputs(); ++k) {
      const auto root = g_.root(a.in[std::size_t(k)]);
      if (first_[std::size_t(root)] == std::int32_t(j)) first_[std::size_t(root)] = next_reader(root, j + 1);
      if (last_[std::size_t(root)] < std::int32_t(i)) last_[std::size_t(root)] = std::int32_t(i);
    }
    return true;
  }
  constexpr std::int32_t next_reader(std::int32_t root, std::size_t from) const {
    for (std::size_t i = from; i < g_.nodes.size(); ++i) {
      const node& n = g_.nodes[i];
      if (n.dead || n.op->kind == op_kind::view) continue;
      for (int k = 0; k < n.inputs(); ++k)
        if (g_.root(n.in[std::size_t(k)]) == root) return std::int32_t(i);
    }
    return -1;
  }

  /// Sets f to a followed by b if that fits into the limits.
  constexpr fusion_blocker merge(const node& a, const node& b, std::size_t i, bool host, node& f) {
    std::array<std::int32_t, max_inputs> in{-1, -1, -1, -1, -1, -1, -1, -1};
    std::array<std::int32_t, max_outputs> out{-1, -1, -1, -1, -1, -1};
    std::array<std::int8_t, max_outputs> a_store{-1, -1, -1, -1, -1, -1};  // new output index of each output of a
    int ins = 0, outs = 0;
    for (; ins < a.inputs(); ++ins) in[std::size_t(ins)] = a.in[std::size_t(ins)];
    const auto produced = [&](std::int32_t v) {
      for (int k = 0; k < a.outputs(); ++k)
        if (a.out[std::size_t(k)] == v) return k;
      return -1;
    };
    const int own = host ? a.op->host_operands(a.attr) : 0;
    std::array<std::int8_t, max_inputs> b_arg{};  // operand of b -> operand of f, or -10 - output of a
    for (int k = 0; k < b.inputs(); ++k) {
      const auto v = b.in[std::size_t(k)];
      if (const int o = produced(v); o >= 0) {
        b_arg[std::size_t(k)] = std::int8_t(-10 - o);
        continue;
      }
      for (int o = 0; o < a.outputs(); ++o)
        if (g_.root(v) == a.out[std::size_t(o)]) return fusion_blocker::reordered;  // b also reads the result in another order
      int at = own;
      while (at < ins && in[std::size_t(at)] != v) ++at;
      if (at == ins) {
        if (ins == max_inputs) return fusion_blocker::inputs;
        in[std::size_t(ins++)] = v;
      }
      b_arg[std::size_t(k)] = std::int8_t(at);
    }
    for (int k = 0; k < b.outputs(); ++k) out[std::size_t(outs++)] = b.out[std::size_t(k)];
    for (int k = 0; k < a.outputs(); ++k)  // results that others read, too, are stored as well
      if (last_[std::size_t(a.out[std::size_t(k)])] > std::int32_t(i)) {
        if (outs == max_outputs) return fusion_blocker::outputs;
        if (host && a.body_size == 0) return fusion_blocker::bare_gemm_kept;
        a_store[std::size_t(k)] = std::int8_t(outs);
        out[std::size_t(outs++)] = a.out[std::size_t(k)];
      }
    if (a.body_size + b.body_size > max_micro_ops) return fusion_blocker::length;
    f.in = in;
    f.out = out;
    std::array<std::int8_t, max_outputs> result{};  // output of a -> operand that holds it
    f.body = std::int32_t(g_.micro_ops.size());
    f.body_size = a.body_size + b.body_size;
    if (host && a.body_size == 0) result[0] = gemm_result;
    for (int k = 0; k < a.body_size; ++k) {
      micro_op m = g_.micro_ops[std::size_t(a.body + k)];
      if (m.store >= 0) {
        result[std::size_t(m.store)] = std::int8_t(max_inputs + k);
        m.store = a_store[std::size_t(m.store)];
      }
      g_.add_instruction(m, g_.micro_rules[std::size_t(a.body + k)]);
    }
    for (int k = 0; k < b.body_size; ++k) {
      micro_op m = g_.micro_ops[std::size_t(b.body + k)];
      for (auto& arg : m.arg) {
        if (arg < 0) continue;
        if (arg >= max_inputs) arg = std::int8_t(arg + a.body_size);
        else arg = b_arg[std::size_t(arg)] <= -10 ? result[std::size_t(-10 - b_arg[std::size_t(arg)])] : b_arg[std::size_t(arg)];
      }
      g_.add_instruction(m, g_.micro_rules[std::size_t(b.body + k)]);
    }
    return fusion_blocker::none;
  }
};
}  // namespace plan_detail

/// Lowers element-wise nodes to bodies and, if asked to, fuses them, also into matmuls as far as `epilogues` permits.
constexpr void fuse(trace& g, bool on, const epilogue_rule& epilogues) {
  plan_detail::fusion f(g, epilogues);
  f.lower();
  if (on) f.run();
}

/// Whether no element-wise step could still join a step that makes one of its operands: `fuse` leaves a trace so, and so must the later passes.
constexpr bool is_fused(trace g, const epilogue_rule& epilogues) {
  plan_detail::fusion pass(g, epilogues);
  pass.find_readers();
  for (std::size_t i = 0; i < g.nodes.size(); ++i)
    for (int k = 0; pass.is_body(i) && k < g.nodes[i].inputs(); ++k)
      if (pass.why(i, g.nodes[i].in[std::size_t(k)]) == fusion_blocker::none) return false;
  return true;
}

}  // namespace isotope
