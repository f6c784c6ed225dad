#pragma once
/// Reverse-mode differentiation: walks the trace backwards, asks each op's gradient rule, and collects the sums.
#include <cstdint>
#include <vector>

#include "../core/tape.hpp"
#include "../op/add.hpp"
#include "../op/cast.hpp"
#include "../op/fill.hpp"

namespace isotope {

/// Chooses the blocks that discard their activations and recompute them in the backward pass. Gradients have the same bits either way.
struct recompute_policy {
  enum class kind : std::uint8_t { none, all, every, keep_matmuls } which = kind::none;
  int period = 1;  // of `every`: blocks 0, period, 2 period, ... are recomputed
  constexpr bool applies(int block) const {
    return block >= 0 && (which == kind::all || which == kind::keep_matmuls || (which == kind::every && block % period == 0));
  }
};
namespace recompute {
inline constexpr recompute_policy none{};
inline constexpr recompute_policy all{recompute_policy::kind::all, 1};
inline constexpr recompute_policy keep_matmuls{recompute_policy::kind::keep_matmuls, 1};  // keeps the outputs of matmul and attention
constexpr recompute_policy every(int period) { return {recompute_policy::kind::every, period}; }
}  // namespace recompute

namespace plan_detail {

/// The state of one backward walk.
class backward {
 public:
  constexpr backward(tape& t, recompute_policy policy)
      : t_(t), policy_(policy), grad_(t.g.values.size(), -1), owned_(t.g.values.size(), 0), recomputed_(t.g.values.size(), -1) {}

  constexpr void run(std::int32_t loss) {
    const auto nodes = std::int32_t(t_.g.nodes.size());
    std::int32_t repeated = -1;  // block whose forward pass has been recorded again
    grad_[std::size_t(loss)] = fill(t_, t_.describe(loss).dims, t_.describe(loss).type, 1.0).id;
    for (std::int32_t i = nodes - 1; i >= 0 && t_.ok(); --i) {
      const node f = t_.g.nodes[std::size_t(i)];
      if (f.op->gradient == nullptr || !wanted(f)) continue;
      if (policy_.applies(f.block) && f.block != repeated) repeat(repeated = f.block, nodes);
      pull(f);
    }
    for (auto& p : t_.g.params) p.grad = grad_[std::size_t(p.value)];
  }

 private:
  tape& t_;
  recompute_policy policy_;
  std::vector<std::int32_t> grad_;        // of each forward value
  std::vector<std::uint8_t> owned_;       // whether its bytes belong to this gradient alone
  std::vector<std::int32_t> recomputed_;  // the recomputed copy of each value

  constexpr bool wanted(const node& f) const {
    bool dy = false, dx = false;
    for (int k = 0; k < f.outputs(); ++k)
      dy = dy || (grad_[std::size_t(f.out[std::size_t(k)])] >= 0 && (k == 0 || f.op->kind == op_kind::view));
    for (int k = 0; k < f.inputs(); ++k) dx = dx || t_.describe(f.in[std::size_t(k)]).wants_gradient;
    return dy && dx;
  }
  constexpr std::int32_t current(std::int32_t v) const { return recomputed_[std::size_t(v)] >= 0 ? recomputed_[std::size_t(v)] : v; }

  constexpr void repeat(std::int32_t block, std::int32_t nodes) {
    for (std::int32_t j = 0; j < nodes && t_.ok(); ++j) {
      const node f = t_.g.nodes[std::size_t(j)];
      if (f.block != block) continue;
      if (policy_.which == recompute_policy::kind::keep_matmuls && f.op->runs_gemms) continue;
      std::array<std::int32_t, max_inputs> in{};
      const auto n = std::size_t(f.inputs());
      for (std::size_t k = 0; k < n; ++k) in[k] = current(f.in[k]);
      const auto r = t_.record(*f.op, {in.data(), n}, f.attr, place::current(), f.ordinal);
      for (int k = 0; k < f.outputs(); ++k) recomputed_[std::size_t(f.out[std::size_t(k)])] = r.out[std::size_t(k)];
    }
  }

  constexpr void pull(const node& f) {
    node g = f;
    for (int k = 0; k < f.inputs(); ++k) g.in[std::size_t(k)] = current(f.in[std::size_t(k)]);
    for (int k = 0; k < f.outputs(); ++k) g.out[std::size_t(k)] = current(f.out[std::size_t(k)]);
    pullback p(t_, g);
    for (int k = 0; k < f.outputs(); ++k) p.dy_[std::size_t(k)] = grad_[std::size_t(f.out[std::size_t(k)])];
    for (int k = 0; k < f.inputs(); ++k)
      if (const auto v = std::size_t(f.in[std::size_t(k)]);
          owned_[v] != 0 && grad_[v] >= 0 && t_.g.dense(grad_[v]) && t_.describe(grad_[v]).type == accum_of(t_.program()))
        p.collected_[std::size_t(k)] = grad_[v];
    if (const auto sum = f.inputs() > 0 ? grad_[std::size_t(f.in[0])] : -1; sum >= 0) {
      const value &x = t_.describe(f.in[0]), &dx = t_.describe(sum);
      if (t_.g.dense(sum) && dx.dims == x.dims && dx.type == x.type && p.grad_type(0) == x.type) p.addend_ = sum;
    }
    const bool passes = f.op->kind == op_kind::view && f.inputs() == 1 && f.outputs() == 1 && owned_[std::size_t(f.out[0])] != 0;
    const auto first_new = std::int32_t(t_.g.nodes.size());
    f.op->gradient(p);
    for (int k = 0; k < f.inputs() && t_.ok(); ++k)
      if (const auto given = p.given_[std::size_t(k)]; given >= 0 && t_.describe(f.in[std::size_t(k)]).wants_gradient) {
        int shares = 0;
        for (auto other : p.given_) shares += other >= 0 && t_.g.root(other) == t_.g.root(given);
        const bool replaces = (p.replaces_[std::size_t(k)] && p.collected_[std::size_t(k)] >= 0) || (k == 0 && p.summed_);
        const bool fresh = shares == 1 && (passes || t_.describe(t_.g.root(given)).producer >= first_new);
        collect(f.in[std::size_t(k)], given, p.grad_type(k), replaces, fresh);
      }
  }

  constexpr void collect(std::int32_t v, std::int32_t given, dtype type, bool replaces, bool fresh) {
    auto& sum = grad_[std::size_t(v)];
    tensor<tape> g{&t_, given};
    if (g.type() != type) {
      g = cast(g, type);
      fresh = true;
    }
    if (sum >= 0 && !replaces) g = add(tensor<tape>{&t_, sum}, g);
    owned_[std::size_t(v)] = fresh || sum >= 0 ? 1 : 0;
    sum = g.id;
  }
};
}  // namespace plan_detail

/// Records the gradients of `loss`, a tensor of one element, with respect to every trainable parameter, in parameter::grad. A loss of more elements
/// is an error in the trace; so is a tensor with a scalar dimension.
constexpr void differentiate(tape& t, std::int32_t loss, recompute_policy policy = {}) {
  if (!t.ok()) return;
  if (loss < 0) {
    t.fail("differentiate: the loss is an invalid tensor: return one that an op, a parameter or an input gave", place::current());
    return;
  }
  if (policy.which == recompute_policy::kind::every && policy.period < 1) {
    message m;
    t.fail(m << "recompute::every(" << policy.period << "): the period is at least 1", place::current());
    return;
  }
  if (t.describe(loss).dims.count() != 1 || !is_floating(t.describe(loss).type)) {
    message m;
    t.fail(m << "differentiate: the loss must be one floating-point number, not " << t.describe(loss).dims << ": reduce it with mean",
           place::current());
    return;
  }
  for (const auto& i : t.g.inputs)
    if (const shape& s = t.describe(i.value).dims; s.has_scalar()) {
      message m;  // gradient rules sum over, and divide by, the sizes that layout plans for
      t.fail(m << "differentiate: input '" << i.label << "' " << s << " has a size known late: train with constant sizes",
             place::current());
      return;
    }
  if (t.g.any_late) {
    message m;
    t.fail(m << "differentiate: a state or a constant has a size known late: train with constant sizes", place::current());
    return;
  }
  t.block = -1;
  plan_detail::backward(t, policy).run(loss);
}

/// Marks nodes whose outputs nobody needs as dead.
constexpr void prune(trace& g) {
  std::vector<std::uint8_t> needed(g.values.size(), 0);
  for (const auto& o : g.outputs) needed[std::size_t(o.value)] = 1;
  for (const auto& p : g.params)
    if (p.grad >= 0) needed[std::size_t(p.grad)] = 1;
  for (std::size_t i = g.nodes.size(); i-- > 0;) {
    node& n = g.nodes[i];
    bool keep = n.effect;
    for (int k = 0; k < n.outputs(); ++k) keep = keep || needed[std::size_t(n.out[std::size_t(k)])] != 0;
    n.dead = !keep;
    if (keep)
      for (int k = 0; k < n.inputs(); ++k) needed[std::size_t(n.in[std::size_t(k)])] = 1;
  }
}

}  // namespace isotope
