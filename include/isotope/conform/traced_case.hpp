#pragma once
/// A case as a small program: its operands are inputs; the op's results, or the gradients of sum(y cotangent), are outputs.
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "../op/mul.hpp"
#include "../op/sum.hpp"
#include "../op/view.hpp"
#include "../plan/differentiate.hpp"
#include "block_numbers.hpp"
#include "spec.hpp"

namespace isotope::conform {

struct traced_case {
  trace g;
  std::vector<std::int32_t> in;       // values that the host fills: operands, then cotangents
  std::vector<std::int32_t> out;      // values that the host reads
  std::vector<std::int32_t> out_is;   // which result of the op, or which operand's gradient, each is
  std::vector<shape> cotangent_dims;  // of the results that have one
  std::vector<dtype> cotangent_types;
  bool refused =
      false;  // the op's own shape rule, or a side of the law, ended the trace, and not what the harness or a gradient rule records around it
};

/// Returns the dims of an operand in memory order.
inline shape stored_dims(const operand_recipe& x) {
  shape s;
  for (int k = 0; k < x.dims.rank; ++k) s.push(x.dims.axis(x.order[std::size_t(k)]));
  return s;
}

class case_tracer {
 public:
  /// `kernels` are the target's; `decompose_all`: decomposes every op that can be decomposed.
  static traced_case trace_of(const test_case& c, dtype program, std::span<const kernel_info> kernels, bool decompose_all = false) {
    case_tracer t(program, kernels, decompose_all);
    t.record(c);
    return std::move(t.r_);
  }

 private:
  tape t_;
  traced_case r_;

  case_tracer(dtype program, std::span<const kernel_info> kernels, bool decompose_all) : t_(program) {
    t_.kernels = kernels;
    t_.decompose_all = decompose_all;
  }

  std::int32_t host_value(const shape& s, dtype type) {
    const auto id = t_.g.add_value(s, type, value_kind::input);
    r_.in.push_back(id);
    return id;
  }
  /// Returns operand k as the op sees it.
  std::int32_t operand(const test_case& c, std::size_t k) {
    const operand_recipe& x = c.in[k];
    if (in_blocks(x.type)) return block_operand(x);
    const auto id = host_value(stored_dims(x), x.type);
    if (differentiates(c)) {
      const operand_role& role = c.of->inputs[std::min(k, c.of->inputs.size() - 1)];
      value& v = t_.g.values[std::size_t(id)];
      v.wants_gradient = role.differentiable && is_floating(x.type);
      if (v.wants_gradient && role.parameter) v.kind = value_kind::param;
    }
    return in_order_of(x, id);
  }
  /// Returns a weight in blocks as the op sees it: as in plans, it lies in a region of bytes.
  std::int32_t block_operand(const operand_recipe& x) {
    if (!fits_blocks(x)) {
      message m;
      t_.fail(m << "an operand " << x.dims << " in " << name_of(x.type) << " needs two axes, and rows of whole blocks", place::current());
      return -1;
    }
    const extents strides = block_rows(x.dims, x.order).strides();
    const auto region = host_value({quantized::bytes_of(x.type, x.dims, strides)}, x.type);
    const auto id = t_.g.add_value(x.dims, x.type, value_kind::input);
    value& v = t_.g.values[std::size_t(id)];
    v.base = region;
    v.strides = strides;
    return id;
  }
  std::int32_t copy_of(std::int32_t v) { return t_.apply(rules<op::copy>, std::span(&v, 1), {}, place::current()).out[0]; }

  /// Makes v an output with its own memory.
  void give(std::int32_t v, std::int32_t is) {
    if (!t_.ok() || v < 0) return;
    const value& x = t_.describe(v);
    if (x.base >= 0 || x.kind != value_kind::temp || !t_.g.dense(v)) v = copy_of(v);
    if (!t_.ok()) return;
    t_.g.values[std::size_t(v)].kind = value_kind::output;
    t_.g.outputs.push_back({name("y"), v});
    r_.out.push_back(v);
    r_.out_is.push_back(is);
  }

  void record(const test_case& c) {
    std::vector<std::int32_t> x;
    for (std::size_t k = 0; k < c.in.size(); ++k) x.push_back(operand(c, k));
    if (!t_.ok()) r_.refused = true;
    else if (differentiates(c)) record_gradient(c, x);
    else if (c.kind == case_kind::law) record_law(c, x);
    else record_forward(c, x);
    for (const auto v : r_.in) t_.g.values[std::size_t(v)].kind = value_kind::input;
    t_.g.params.clear();
    prune(t_.g);
    r_.g = std::move(t_.g);
  }
  applied apply(const test_case& c, std::span<const std::int32_t> x) {
    const bool sound = t_.ok();
    const applied y = t_.record(*c.of->rules, x, c.attr, place::current(), c.stream);
    r_.refused = sound && !t_.ok() && is_said_by(c.of->op->name, t_.g.error.view());
    return y;
  }
  /// Whether an error comes from this op itself, not from an op that replaced it.
  static bool is_said_by(std::string_view op, std::string_view error) {
    const auto at = error.find(std::string(op) + ": ");
    return at != error.npos && (at == 0 || error[at - 1] == ' ');
  }
  void record_forward(const test_case& c, std::vector<std::int32_t>& x) {
    const op_info& op = *c.of->op;
    for (std::size_t k = 0; k < x.size(); ++k)
      if (((op.inout >> k) & 1) != 0) x[k] = copy_of(x[k]);  // an op must not update an input in place
    const applied y = apply(c, x);
    for (int k = 0; k < max_outputs && t_.ok(); ++k) {
      const auto v = y.out[std::size_t(k)];
      if (v < 0) break;
      if (((op.inout >> k) & 1) == 0) {
        give(v, k);
        continue;
      }
      const auto root = t_.g.root(v);
      t_.g.values[std::size_t(root)].kind = value_kind::output;
      t_.g.outputs.push_back({name("y"), v});
      r_.out.push_back(root);
      r_.out_is.push_back(k);
    }
  }
  void record_law(const test_case& c, const std::vector<std::int32_t>& x) {
    std::vector<tensor<tape>> t;
    for (auto v : x) t.push_back({&t_, v});
    const auto sides = c.of->laws[std::size_t(c.law)].build(t, c.attr);
    r_.refused = !t_.ok();
    give(sides.left.id, 0);
    give(sides.right.id, 1);
  }
  void record_gradient(const test_case& c, const std::vector<std::int32_t>& x) {
    const applied y = apply(c, x);
    tensor<tape> loss{&t_, -1};
    for (int k = 0; k < max_outputs && k < c.cotangents_of && t_.ok() && y.out[std::size_t(k)] >= 0; ++k) {
      const tensor<tape> v{&t_, y.out[std::size_t(k)]};
      if (!is_floating(v.type())) continue;
      const tensor<tape> dy{&t_, host_value(v.dims(), v.type())};
      r_.cotangent_dims.push_back(v.dims());
      r_.cotangent_types.push_back(v.type());
      auto term = sum(v * dy);
      if (term.type() != accum_of(t_.program())) term = cast(term, accum_of(t_.program()));
      loss = loss.valid() ? loss + term : term;
    }
    if (!t_.ok()) return;
    for (std::size_t k = 0; k < c.in.size(); ++k) {
      parameter p;
      p.value = r_.in[k];
      t_.g.params.push_back(p);
    }
    differentiate(t_, loss.id);
    for (std::size_t k = 0; k < c.in.size() && t_.ok(); ++k) {
      const auto g = t_.g.params[k].grad;
      if (g >= 0) give(in_order_of(c.in[k], g), std::int32_t(k));
    }
    for (auto& p : t_.g.params) p.grad = -1;
  }
  /// Returns a value in the memory order of an operand, or of its gradient, with its axes in the shape's order.
  std::int32_t in_order_of(const operand_recipe& x, std::int32_t g) {
    op::permute::constants a;
    bool in_order = true;
    for (int i = 0; i < x.dims.rank; ++i) {
      a.order[std::size_t(x.order[std::size_t(i)])] = i;
      in_order = in_order && x.order[std::size_t(i)] == i;
    }
    return in_order ? g : t_.apply(rules<op::permute>, std::span(&g, 1), a, place::current()).out[0];
  }
};

}  // namespace isotope::conform
