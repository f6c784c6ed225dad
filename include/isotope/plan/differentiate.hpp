#pragma once
/// Reverse-mode differentiation: walks the trace backwards, asks each op's gradient rule, and collects the sums.
#include <cstdint>
#include <vector>

#include "../core/tape.hpp"
#include "../op/add.hpp"
#include "../op/cast.hpp"
#include "../op/fill.hpp"
#include "chunked_head.hpp"

namespace isotope {

/// Chooses what blocks discard and recompute in the backward pass. Gradients have the same bits either way.
///
/// all, every: blocks keep their input alone; the forward pass of a block runs again before its backward pass.
/// keep_matmuls: blocks also keep what matmul and attention give.
/// cheap: blocks discard only what one pass over kept operands gives again: results of norms and activation functions (op_info::cheap), each
///   recomputed just before the gradient that reads it. Products, attention, sums and the statistics of norms are kept. A block of GPT-2 keeps 6 C
///   numbers a token less, two norms and a GELU of width 4 C, for two norms and a GELU more.
/// Source: Chen et al. 2016, arXiv:1604.06174; Korthikanti et al. 2022, arXiv:2205.05198 (selective recomputation).
struct recompute_policy {
  enum class kind : std::uint8_t { none, all, every, keep_matmuls, cheap } which = kind::none;
  int period = 1;  // of `every`: blocks 0, period, 2 period, ... are recomputed
  constexpr bool applies(int block) const { return block >= 0 && which != kind::none && (which != kind::every || block % period == 0); }
  /// Whether the whole forward pass of a block runs again, not single ops.
  constexpr bool repeats(int block) const { return which != kind::cheap && applies(block); }
};
namespace recompute {
inline constexpr recompute_policy none{};
inline constexpr recompute_policy all{recompute_policy::kind::all, 1};
inline constexpr recompute_policy keep_matmuls{recompute_policy::kind::keep_matmuls, 1};  // keeps the outputs of matmul and attention
inline constexpr recompute_policy cheap{recompute_policy::kind::cheap, 1};
constexpr recompute_policy every(int period) { return {recompute_policy::kind::every, period}; }
}  // namespace recompute

namespace plan_detail {

/// The state of one backward walk.
class backward {
 public:
  constexpr backward(tape& t, recompute_policy policy, const head_nodes& head, std::int64_t chunks)
      : t_(t),
        policy_(policy),
        head_(head),
        chunks_(chunks),
        grad_(t.g.values.size(), -1),
        owned_(t.g.values.size(), 0),
        recomputed_(t.g.values.size(), -1) {}

  /// Returns the value of the loss, which is another one if the head is computed in chunks.
  constexpr std::int32_t run(std::int32_t loss, double share) {
    const auto nodes = std::int32_t(t_.g.nodes.size());
    std::int32_t repeated = -1;  // block whose forward pass has been recorded again
    grad_[std::size_t(loss)] = fill(t_, t_.describe(loss).dims, t_.describe(loss).type, share).id;
    for (std::int32_t i = nodes - 1; i >= 0 && t_.ok(); --i) {
      const node f = t_.g.nodes[std::size_t(i)];
      if (f.rules->gradient == nullptr || !wanted(f)) continue;
      if (i == head_.loss) {
        loss = pull_head(f);
        continue;
      }
      if (policy_.repeats(f.block) && f.block != repeated) repeat(repeated = f.block, nodes);
      pull(f);
    }
    for (auto& p : t_.g.params) p.grad = grad_[std::size_t(p.value)];
    return loss;
  }

 private:
  tape& t_;
  recompute_policy policy_;
  head_nodes head_;
  std::int64_t chunks_;
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
      const auto r = t_.record(*f.rules, {in.data(), n}, f.attr, place::current(), f.ordinal);
      for (int k = 0; k < f.outputs(); ++k) recomputed_[std::size_t(f.out[std::size_t(k)])] = r.out[std::size_t(k)];
    }
  }

  /// Returns v or, by recompute::cheap, a copy of it that is computed here; its operands are kept, or copied in the same way.
  constexpr std::int32_t again(std::int32_t v) {
    const auto from = t_.describe(v).producer;
    if (policy_.which != recompute_policy::kind::cheap || recomputed_[std::size_t(v)] >= 0 || from < 0) return current(v);
    const node f = t_.g.nodes[std::size_t(from)];
    if (!policy_.applies(f.block) || f.effect || v != f.out[0] || (!f.op->cheap && f.op->kind != op_kind::view)) return v;
    std::array<std::int32_t, max_inputs> in{};
    const auto n = std::size_t(f.inputs());
    bool moved = f.op->cheap;  // a view is copied only if what it views is
    for (std::size_t k = 0; k < n; ++k) {
      const value& x = t_.describe(f.in[k]);
      if (f.op->cheap && !x.wants_gradient && t_.describe(t_.g.root(f.in[k])).kind == value_kind::temp) return v;  // no gradient keeps x
      in[k] = again(f.in[k]);
      moved = moved || in[k] != f.in[k];
    }
    if (!moved) return v;
    return recomputed_[std::size_t(v)] = t_.record(*f.rules, {in.data(), n}, f.attr, place::current(), 0).out[0];
  }

  constexpr std::int32_t pull_head(const node& f) {
    const node product = t_.g.nodes[std::size_t(head_.product)];
    const auto r = head_recorder(t_, product, f, grad_[std::size_t(f.out[0])]).record(chunks_);
    if (!t_.ok()) return f.out[0];
    t_.g.head_chunks = r.chunks;
    pullback p(t_, product);
    if (r.dx >= 0) collect(product.in[0], r.dx, p.grad_type(0), false, true);
    if (r.dw >= 0) collect(product.in[1], r.dw, p.grad_type(1), false, true);
    return r.loss;
  }

  constexpr void pull(const node& f) {
    node g = f;
    for (int k = 0; k < f.inputs(); ++k) g.in[std::size_t(k)] = again(f.in[std::size_t(k)]);
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
    f.rules->gradient(p);
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
/// is an error in the trace; so is a tensor with a scalar dimension. Returns the loss: another value if the head is computed in chunks.
///
/// @param chunks  of rows, of the head (head_policy)
/// @param share   the gradients are those of share x loss: 1 / data indices, whose gradients are added up
constexpr std::int32_t differentiate(tape& t, std::int32_t loss, recompute_policy policy = {}, std::int64_t chunks = 1, double share = 1) {
  if (!t.ok()) return loss;
  if (loss < 0) {
    t.fail("differentiate: the loss is an invalid tensor: return one that an op, a parameter or an input gave", place::current());
    return loss;
  }
  if (policy.which == recompute_policy::kind::every && policy.period < 1) {
    message m;
    t.fail(m << "recompute::every(" << policy.period << "): the period is at least 1", place::current());
    return loss;
  }
  if (chunks < 1) {
    message m;
    t.fail(m << "a head in " << chunks << " chunks: give at least 1", place::current());
    return loss;
  }
  if (t.describe(loss).dims.count() != 1 || !is_floating(t.describe(loss).type)) {
    message m;
    t.fail(m << "differentiate: the loss must be one floating-point number, not " << t.describe(loss).dims << ": reduce it with mean",
           place::current());
    return loss;
  }
  for (const auto& i : t.g.inputs)
    if (const shape& s = t.describe(i.value).dims; s.has_scalar()) {
      message m;  // gradient rules sum over, and divide by, the sizes that layout plans for
      t.fail(m << "differentiate: input '" << i.label << "' " << s << " has a size known late: train with constant sizes",
             place::current());
      return loss;
    }
  if (t.g.any_late) {
    message m;
    t.fail(m << "differentiate: a state or a constant has a size known late: train with constant sizes", place::current());
    return loss;
  }
  t.block = -1;
  plan_detail::head_nodes head;
  if (chunks > 1) {
    head = plan_detail::find_head(t.g, loss);
    if (head.loss >= 0 && policy.applies(t.g.nodes[std::size_t(head.loss)].block)) head = {-1, -1, head_obstacle::recomputed};
    t.g.obstacle = head.obstacle;
  }
  return plan_detail::backward(t, policy, head, chunks).run(loss, share);
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
