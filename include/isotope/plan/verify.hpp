#pragma once
/// Checks a trace between the passes of the planner for what every pass relies on. A fault becomes the trace's error, which names the pass, the node
/// and the tensor.
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "../core/tape.hpp"

namespace isotope {

/// Whether programs check their traces when they plan at run time: debug builds do.
#ifdef NDEBUG
constexpr bool verifies_traces = false;
#else
constexpr bool verifies_traces = true;
#endif

namespace plan_detail {

/// Walks over a trace once, in the order of its nodes.
///
/// A value that a node makes is a version of its bytes: no node may read it after another has overwritten them. A value that no node makes is a
/// place: a parameter, a region, or a part of one. Reading a place gives what is there at that moment, so
/// - reads of weights and of the optimiser's state come before the update, but for collectives, which pass updated weights on;
/// - reads of gradients and outputs come after the nodes that make them; only in-place work on a place may follow.
class trace_check {
 public:
  constexpr trace_check(const trace& g, std::string_view pass)
      : g_(g), pass_(pass), made_(g.values.size(), -1), last_write_(g.values.size(), -1), last_look_(g.values.size(), -1) {
    body_.program = g.program;
  }

  constexpr message run() {
    for (std::size_t v = 0; v < g_.values.size() && sound(); ++v) check_base(std::int32_t(v));
    for (std::size_t i = 0; i < g_.nodes.size() && sound(); ++i) {
      node_ = std::int32_t(i);
      if (g_.nodes[i].dead) continue;
      check_tables(g_.nodes[i]);
      if (sound()) check_reads(g_.nodes[i]);
      if (sound()) check_rule(g_.nodes[i]);
      if (sound()) check_writes(g_.nodes[i]);
    }
    node_ = std::int32_t(g_.nodes.size());
    for (const auto& o : g_.outputs)
      if (sound()) check_written(o.value, false);
    return fault_;
  }

 private:
  /// Records that a node touches elements [first, last) of a root through a value; `before` is the previous touch of the same root.
  struct touch {
    std::int32_t node, value, before;
    std::int64_t first, last;
  };
  const trace& g_;
  std::string_view pass_;
  message fault_;
  std::int32_t node_ = -1;                            // g_.nodes.size() stands for the outputs of the program
  std::vector<std::int32_t> made_;                    // the node that makes each value, of those seen so far
  std::vector<std::int32_t> last_write_, last_look_;  // by root: the newest write in touches_, and the newest read of a place
  std::vector<touch> touches_;
  trace body_;  // the operands of one instruction

  constexpr bool sound() const { return fault_.empty(); }
  constexpr const value& at(std::int32_t v) const { return g_.values[std::size_t(v)]; }
  constexpr const node& node_at(std::int32_t i) const { return g_.nodes[std::size_t(i)]; }

  // These compose the message of a fault.

  constexpr message& begin() {
    fault_ << "after " << pass_ << ": ";
    if (node_ < 0) return fault_;
    if (std::size_t(node_) == g_.nodes.size()) return fault_ << "the program's output";
    return tell_node(node_);
  }
  constexpr message& tell_node(std::int32_t i) {
    fault_ << "node " << i;
    if (node_at(i).op != nullptr) fault_ << ' ' << node_at(i).op->name;
    return fault_;
  }
  constexpr message& tell(std::int32_t v) {
    fault_ << '%' << v;
    if (v < 0 || std::size_t(v) >= g_.values.size()) return fault_;
    fault_ << ' ' << at(v).dims << ' ' << isotope::name_of(at(v).type);
    for (const auto& p : g_.params)
      if (p.value == v) fault_ << " '" << p.path << '\'';
    for (const auto& i : g_.inputs)
      if (i.value == v) fault_ << " '" << i.label << '\'';
    return fault_;
  }

  // Elements.

  /// Returns the elements from the first element of v to behind the last; 0 if it has none. Weights in blocks are counted in bytes.
  constexpr std::int64_t span_of(const value& v) const {
    std::int64_t n = v.dims.count() == 0 ? 0 : 1;
    for (int i = 0; i < v.dims.rank && n > 0; ++i) n += (v.dims[i] - 1) * v.strides[std::size_t(i)];
    return in_blocks(v.type) && v.dims.rank == 2 ? quantized::bytes_of(v.type, v.dims, v.strides) : n;
  }
  constexpr touch touch_of(std::int32_t v) const {
    const auto first = g_.root_offset(v);
    return {node_, v, -1, first, first + span_of(at(v))};
  }
  constexpr static bool overlap(const touch& a, const touch& b) { return a.first < b.last && b.first < a.last; }
  /// Returns the value that v is a view of: an op's result or a place.
  constexpr std::int32_t definition(std::int32_t v) const {
    while (at(v).base >= 0 && at(v).producer >= 0 && node_at(at(v).producer).op->kind == op_kind::view) v = at(v).base;
    return v;
  }
  constexpr bool place_of(std::int32_t v) const { return at(definition(v)).producer < 0; }
  /// Whether v views version y, or one that was made from it in place.
  constexpr bool follows(std::int32_t v, std::int32_t y) const {
    while (v >= 0 && v != y) v = at(v).base;
    return v == y;
  }

  /// Checks that views lie within what they view.
  constexpr void check_base(std::int32_t v) {
    std::size_t steps = 0;
    for (auto b = v; at(b).base != -1; b = at(b).base)
      if (at(b).base < 0 || std::size_t(at(b).base) >= g_.values.size() || ++steps > g_.values.size()) {
        begin();
        tell(v) << " is a view of no tensor";
        return;
      }
    if (at(v).base < 0 || at(at(v).base).kind == value_kind::packed) return;  // such a copy has the layout of its kernel
    const value &x = at(v), &base = at(x.base);
    const bool in = x.offset >= 0 && (span_of(x) == 0 || x.offset + span_of(x) <= span_of(base));
    if (in && x.type == base.type) return;
    begin();
    tell(v) << " from element " << x.offset << (in ? " has another format than " : " lies outside ");
    tell(x.base) << ", which it looks at";
  }

  constexpr bool known(std::int32_t v) {
    if (v >= 0 && std::size_t(v) < g_.values.size()) return true;
    begin() << " names the tensor ";
    tell(v) << ", which is not there";
    return false;
  }

  /// Checks that ids are in range, that every value has one producer, and that the kernel knows what it is asked for.
  constexpr void check_tables(const node& n) {
    if (n.op == nullptr) {
      begin() << " has no op";
      return;
    }
    for (auto v : n.in)
      if (v != -1 && !known(v)) return;
    for (auto v : n.out) {
      if (v == -1) continue;
      if (!known(v)) return;
      if (made_[std::size_t(v)] >= 0) {
        begin() << " makes ";
        tell(v) << ", which ";
        tell_node(made_[std::size_t(v)]) << " makes, too";
        return;
      }
      made_[std::size_t(v)] = node_;
      if (at(v).producer != node_) {
        begin() << " makes ";
        tell(v) << ", whose producer is given as node " << at(v).producer;
        return;
      }
    }
    if (n.body < 0 || n.body_size < 0 || std::size_t(n.body + n.body_size) > g_.micro_ops.size())
      begin() << " has a body outside the table";
    else if (n.body_size > max_micro_ops) begin() << " has a body of " << n.body_size << " instructions, more than " << max_micro_ops;
    else if (n.accumulate != 0 && (!n.op->accumulates || n.accumulate >> n.outputs() != 0))
      begin() << " accumulates outputs that its kernel overwrites";
    else if (n.adds != 0 && (!n.op->accumulates || n.adds >> n.outputs() != 0 || n.body_size > 0))
      begin() << " adds to outputs that its kernel overwrites";
    else if (n.phases == 0) begin() << " runs in no phase";
    else if (n.summed >= 0) check_column_sums(n);
  }
  constexpr static int results(const node& n) { return n.outputs() - (n.summed < 0 ? 0 : 1); }  // outputs without the column sums
  /// Checks that the last output of n can hold the sums of another output over all axes but the last.
  constexpr void check_column_sums(const node& n) {
    if (n.summed < results(n) && (n.accumulate | n.adds) == 0) {
      const auto x = n.out[std::size_t(n.summed)], y = n.out[std::size_t(results(n))];
      if (at(x).dims.rank > 1 && at(y).dims.count() == at(x).dims.cols() && at(y).type == accum_of(g_.program) && g_.dense(y)) return;
    }
    begin() << " sums the columns of output " << int(n.summed)
            << ", which it adds to, does not make, or whose sums its last output cannot hold";
  }

  /// Checks that v and what it views exist when the node runs. `first`: the node's first run overwrites it unread.
  constexpr void check_written(std::int32_t v, bool first) {
    const bool launched = node_ == std::int32_t(g_.nodes.size()) || node_at(node_).op->kind != op_kind::view;
    std::int32_t root = v;
    for (auto u = v; u >= 0; root = u, u = at(u).base) {
      const auto p = at(u).producer;
      if (p < 0) continue;
      if (std::size_t(p) >= g_.nodes.size() || node_at(p).dead) {
        begin() << " reads ";
        tell(v) << ", whose producer, node " << p << ", is dead";
        return;
      }
      if (launched && p >= node_ && node_at(p).op->kind != op_kind::view) {
        begin() << " reads ";
        tell(v) << " before ";
        tell_node(p) << " makes it";
        return;
      }
    }
    if (!launched || first || at(root).producer >= 0) return;
    const bool by_steps = at(root).kind == value_kind::temp || at(root).kind == value_kind::output;
    if (!by_steps || last_write_[std::size_t(root)] >= 0) return;
    begin() << " reads ";
    tell(v) << ", which no node has written";
  }

  constexpr void check_reads(const node& n) {
    for (int k = 0; k < n.inputs() && sound(); ++k) {
      const auto v = n.in[std::size_t(k)];
      check_written(v, ((n.op->inout & n.accumulate) >> k & 1) != 0);
      if (!sound() || n.op->kind == op_kind::view) continue;
      const auto root = g_.root(v);
      auto read = touch_of(v);
      const auto kind = at(root).kind;
      const bool place = place_of(v);
      const bool kept = kind != value_kind::temp && kind != value_kind::grad && kind != value_kind::output;
      for (auto t = last_write_[std::size_t(root)]; t >= 0 && (kept || !place) && !n.op->collective; t = touches_[std::size_t(t)].before) {
        const touch w = touches_[std::size_t(t)];
        if (!overlap(w, read) || follows(v, w.value) || (!place && w.node <= at(definition(v)).producer)) continue;
        begin() << " reads ";
        tell(v) << " after ";
        tell_node(w.node) << " has overwritten it";
        return;
      }
      if (!place || kept) continue;
      read.before = last_look_[std::size_t(root)];
      last_look_[std::size_t(root)] = std::int32_t(touches_.size());
      touches_.push_back(read);
    }
  }

  /// Checks that no other operand is written in place, and that what a place holds is complete before it is read.
  constexpr void check_writes(const node& n) {
    if (n.op->kind == op_kind::view) return;
    for (int k = 0; k < n.outputs() && sound(); ++k) {
      const auto y = n.out[std::size_t(k)];
      const auto root = g_.root(y);
      auto written = touch_of(y);
      const bool adds = (n.adds >> k & 1) != 0, inout = adds || (n.op->inout >> k & 1) != 0;
      if (adds || (inout && k < n.inputs())) {
        const auto x = adds ? at(y).base : n.in[std::size_t(k)];
        if (adds && (x < 0 || at(x).producer < 0 || at(x).producer >= node_)) {
          begin() << " adds to ";
          tell(y) << ", which no earlier node has made";
          return;
        }
        if (at(y).base != x) {
          begin() << " works in place on ";
          tell(x) << ", and its result ";
          tell(y) << " lies elsewhere";
          return;
        }
        for (int j = 0; j < n.inputs(); ++j)
          if ((adds || j != k) && g_.root(n.in[std::size_t(j)]) == root && overlap(touch_of(n.in[std::size_t(j)]), written)) {
            begin() << " overwrites ";
            tell(x) << " and reads it as ";
            tell(n.in[std::size_t(j)]);
            return;
          }
      }
      const bool on_place = inout && !adds && place_of(n.in[std::size_t(k)]);
      for (auto t = last_look_[std::size_t(root)]; t >= 0 && !on_place; t = touches_[std::size_t(t)].before)
        if (const touch r = touches_[std::size_t(t)]; overlap(r, written)) {
          begin() << " makes ";
          tell(y) << " after ";
          tell_node(r.node) << " has read it as ";
          tell(r.value);
          return;
        }
      for (auto t = last_write_[std::size_t(root)]; t >= 0; t = touches_[std::size_t(t)].before)
        if (const touch w = touches_[std::size_t(t)]; overlap(w, written) && (!inout || w.node == node_)) {
          begin() << " makes ";
          tell(y) << " over ";
          tell(w.value) << " of ";
          tell_node(w.node);
          return;
        }
      written.before = last_write_[std::size_t(root)];
      last_write_[std::size_t(root)] = std::int32_t(touches_.size());
      touches_.push_back(written);
    }
  }

  constexpr void refused(const message& why) { begin() << " does not fit its shape rule: " << why.view(); }
  /// Checks an operand or output v against the result of a shape rule.
  constexpr bool fits(std::int32_t v, const shape& dims, dtype type) {
    if (at(v).dims == dims && at(v).type == type) return true;
    begin() << " makes ";
    tell(v) << " where its shape rule gives " << dims << ' ' << isotope::name_of(type);
    return false;
  }

  constexpr void check_rule(const node& n) {
    const bool bare = n.op->body == body_role::alone, body = n.body_size > 0;
    if (bare && !body) begin() << " has no body";
    if (bare || !sound()) {
      if (sound()) check_body(n, nullptr);
      return;
    }
    if (body && n.op->host_operands == nullptr) {
      begin() << " has a body, but its op takes none";
      return;
    }
    const int before = body ? n.op->host_operands(n.attr) : n.inputs();
    const auto own = std::size_t(before < n.inputs() ? before : n.inputs());
    shape_rule r(g_, {n.in.data(), own}, n.attr);
    n.rules->infer(r);
    if (r.failed()) return refused(r.error());
    if (body) return check_body(n, &r.out(0));
    if (r.outputs() != results(n)) {
      begin() << " makes " << results(n) << " tensors where its shape rule gives " << r.outputs();
      return;
    }
    for (int k = 0; k < r.outputs() && sound(); ++k) {
      const auto& o = r.out(k);
      const auto v = n.out[std::size_t(k)];
      if (!fits(v, o.dims, o.type) || !o.view) continue;
      if (at(v).base == n.in[0] && at(v).offset == o.offset && at(v).strides == o.strides) continue;
      begin() << " makes ";
      tell(v) << ", which looks elsewhere than its shape rule says";
    }
  }

  /// Checks each instruction of a fused body against its own shape rule. `host` is the matmul whose result the body takes; null: there is none.
  constexpr void check_body(const node& n, const shape_rule::output* host) {
    std::uint32_t stored = 0;
    const shape dims = at(n.out[0]).dims;
    for (std::int32_t k = 0; k < n.body_size; ++k) {
      const micro_op& m = g_.micro_ops[std::size_t(n.body + k)];
      if (m.op == nullptr || m.op->kind != op_kind::elementwise) {
        begin() << ": instruction " << k << " of its body is not element-wise";
        return;
      }
      std::array<std::int32_t, 3> in{};
      std::size_t operands = 0;
      body_.values.clear();
      for (const auto arg : m.arg) {
        if (arg == -1) break;
        const bool input = arg >= 0 && arg < n.inputs(), earlier = arg >= max_inputs && arg < max_inputs + k;
        if (!input && !earlier && !(arg == gemm_result && host != nullptr)) {
          begin() << ": instruction " << k << " of its body, " << m.op->name << ", has no operand " << int(arg);
          return;
        }
        const shape x = input ? at(n.in[std::size_t(arg)]).dims : earlier ? dims : host->dims;
        const dtype type = input     ? at(n.in[std::size_t(arg)]).type
                           : earlier ? g_.micro_ops[std::size_t(n.body + arg - max_inputs)].type
                                     : host->type;
        in[operands++] = body_.add_value(x, type, value_kind::temp);
      }
      const auto a = attributes::of_scalar(m.scalar);
      shape_rule r(body_, {in.data(), operands}, a);
      g_.micro_rules[std::size_t(n.body + k)]->infer(r);
      if (r.failed()) return refused(r.error());
      if (r.outputs() != 1 || !(r.out(0).dims == dims) || r.out(0).type != m.type) {
        begin() << ": instruction " << k << " of its body, " << m.op->name << ", gives " << r.out(0).dims << ' '
                << isotope::name_of(r.out(0).type) << ", not " << dims << ' ' << isotope::name_of(m.type);
        return;
      }
      if (m.store < 0) continue;
      if (m.store >= results(n) || (stored >> m.store & 1) != 0) {
        begin() << ": instruction " << k << " of its body stores output " << int(m.store) << ", which another stores or which is not there";
        return;
      }
      stored |= std::uint32_t(1) << m.store;
      if (!fits(n.out[std::size_t(m.store)], dims, m.type)) return;
    }
    for (int k = 0; k < results(n); ++k)
      if ((stored >> k & 1) == 0) {
        begin() << " stores nothing in ";
        tell(n.out[std::size_t(k)]);
        return;
      }
  }
};

}  // namespace plan_detail

/// Returns what is wrong with a trace that has no error; empty if nothing is. It is the first fault, as `after <pass>: node <i> <op> ... %<value>
/// [shape] format ...`.
constexpr message trace_fault(const trace& g, std::string_view pass) { return plan_detail::trace_check(g, pass).run(); }

namespace plan_detail {
/// Makes a fault that `pass` left the error of the trace. Does nothing while a compiler plans: checking after every pass takes as long as planning
/// GPT-2 124M.
constexpr void verify_after(tape& t, std::string_view pass, bool on) {
  if (on && !std::is_constant_evaluated() && t.ok()) t.g.error = trace_fault(t.g, pass);
}
}  // namespace plan_detail

}  // namespace isotope
