#pragma once
/// Computes once or not at all what a model writes twice or without effect: constants, identities and common subexpressions of the forward pass. Runs
/// after differentiation, so that gradients have the same bits as without it; whatever is then unread is pruned as dead code.
#include <bit>
#include <cstdint>
#include <vector>

#include "../core/trace.hpp"
#include "../op/fill.hpp"

namespace isotope {
namespace plan_detail {

class simplifier {
 public:
  constexpr explicit simplifier(trace& g) : g_(g), now_(g.values.size(), 0), newest_(g.values.size() + 1, -1), older_(g.nodes.size(), -1) {
    for (std::size_t v = 0; v < now_.size(); ++v) now_[v] = std::int32_t(v);
  }
  constexpr void run(std::size_t forward) {
    for (std::size_t i = 0; i < g_.nodes.size(); ++i) {
      node& n = g_.nodes[i];
      for (int k = 0; k < n.inputs(); ++k) n.in[std::size_t(k)] = now_[std::size_t(n.in[std::size_t(k)])];
      if (i >= forward || n.effect || n.op->inout != 0 || n.op->draws(n.attr) || !replaceable(n)) continue;
      if (const std::int32_t same = identity(n); same >= 0) {
        now_[std::size_t(n.out[0])] = same;
        continue;
      }
      fold(n);
      if (const std::int32_t j = earlier(n); j >= 0) {
        const node& first = g_.nodes[std::size_t(j)];
        for (int k = 0; k < n.outputs(); ++k) now_[std::size_t(n.out[std::size_t(k)])] = first.out[std::size_t(k)];
        continue;
      }
      auto& chain = newest_[n.inputs() == 0 ? newest_.size() - 1 : std::size_t(n.in[0])];
      older_[i] = chain;
      chain = std::int32_t(i);
    }
    for (auto& v : g_.values)
      if (v.base >= 0) v.base = now_[std::size_t(v.base)];
  }
  constexpr std::int32_t now(std::int32_t v) const { return now_[std::size_t(v)]; }

 private:
  trace& g_;
  std::vector<std::int32_t> now_;     // by value: what readers read in its place
  std::vector<std::int32_t> newest_;  // by value: the last node that has it as first input; the last entry is for nodes without inputs
  std::vector<std::int32_t> older_;   // by node: the previous one in its chain; -1: none

  constexpr const value& at(std::int32_t v) const { return g_.values[std::size_t(v)]; }
  /// Whether no output was asked for by name.
  constexpr bool replaceable(const node& n) const {
    for (int k = 0; k < n.outputs(); ++k)
      if (at(n.out[std::size_t(k)]).kind != value_kind::temp) return false;
    return n.outputs() > 0;
  }
  /// Returns the number that every element of v has, if it is written as one.
  constexpr const node* constant(std::int32_t v) const {
    const std::int32_t p = at(v).base < 0 ? at(v).producer : -1;
    return p >= 0 && g_.nodes[std::size_t(p)].op->constant && is_floating(at(v).type) ? &g_.nodes[std::size_t(p)] : nullptr;
  }
  /// The same number, bit for bit: -0 is not 0.
  static constexpr bool equal(double x, double y) { return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y); }
  constexpr bool is(std::int32_t v, double x) const {
    const node* c = constant(v);
    return c != nullptr && equal(c->attr.scalar(), x);
  }
  /// x + -0, x - 0, 1 x and x / 1 are x, bit for bit, where that has the same form. x + 0 is not: of -0 it makes 0.
  constexpr std::int32_t identity(const node& n) const {
    const neutral_operand& neutral = n.op->neutral;
    if (!neutral.left && !neutral.right) return -1;
    const auto x = n.in[0], y = n.in[1];
    const bool right = y < 0 ? equal(n.attr.scalar(), neutral.number) : is(y, neutral.number);
    const std::int32_t same = neutral.right && right ? x : neutral.left && is(x, neutral.number) ? y : -1;
    if (same < 0) return -1;
    const value &from = at(same), &to = at(n.out[0]);
    return from.dims == to.dims && from.type == to.type && g_.same_strides(same, n.out[0]) ? same : -1;
  }
  /// Turns a sum, difference, product or quotient of constants into a constant: the number that a kernel would compute, rounded as a kernel rounds
  /// it.
  constexpr void fold(node& n) {
    if (n.rules->calculate == nullptr) return;
    const bool one = n.inputs() == 1;
    const node *a = constant(n.in[0]), *b = one ? nullptr : constant(n.in[1]);
    if (a == nullptr || (!one && b == nullptr)) return;
    const dtype accum = accum_of(g_.program);
    const double x = stored(a->attr.scalar(), at(n.in[0]).type),
                 y = one ? stored(n.attr.scalar(), accum) : stored(b->attr.scalar(), at(n.in[1]).type);
    double r = 0;
    if (!n.rules->calculate(x, y, r)) return;
    const value& to = at(n.out[0]);
    n.becomes(rules<op::fill>);
    n.attr = op::fill::constants{.dims = to.dims, .format = to.type, .x = stored(r, accum)};
    n.in.fill(-1);
  }
  /// Returns x as a format holds it. A sum, product or quotient of two floats computed in double rounds to the float that direct rounding gives.
  static constexpr double stored(double x, dtype t) {
    switch (t) {
      case dtype::f64: return x;
      case dtype::bf16: return float(bfloat16(float(x)));
      case dtype::f16: return float(float16(float(x)));
      default: return float(x);
    }
  }
  /// Returns an earlier node of the block that computes the same, or -1.
  constexpr std::int32_t earlier(const node& n) const {
    for (auto j = newest_[n.inputs() == 0 ? newest_.size() - 1 : std::size_t(n.in[0])]; j >= 0; j = older_[std::size_t(j)]) {
      const node& m = g_.nodes[std::size_t(j)];
      if (m.op == n.op && m.in == n.in && m.block == n.block && m.decomposed == n.decomposed && m.attr == n.attr && same_results(m, n))
        return j;
    }
    return -1;
  }
  /// Whether the results have the same form, which an op need not decide by its inputs alone.
  constexpr bool same_results(const node& m, const node& n) const {
    if (m.outputs() != n.outputs()) return false;
    for (int k = 0; k < n.outputs(); ++k) {
      const value &a = at(m.out[std::size_t(k)]), &b = at(n.out[std::size_t(k)]);
      if (a.dims != b.dims || a.type != b.type || !g_.same_strides(m.out[std::size_t(k)], n.out[std::size_t(k)]) || a.offset != b.offset ||
          (a.base < 0) != (b.base < 0))
        return false;
    }
    return true;
  }
};
}  // namespace plan_detail

/// Removes what changes no bit (x + -0, x - 0, 1 x, x / 1), computes sums, differences, products and quotients of constants, and computes once what a
/// block computes twice from the same values. It covers the first `forward` nodes: recomputation and sums of gradients come after them. Returns what
/// replaces `v`.
constexpr std::int32_t simplify(trace& g, std::size_t forward, std::int32_t v = -1) {
  plan_detail::simplifier s(g);
  s.run(forward);
  for (auto& p : g.params)
    if (p.grad >= 0) p.grad = s.now(p.grad);
  return v >= 0 && g.values[std::size_t(g.root(s.now(v)))].kind == value_kind::temp ? s.now(v) : v;
}

}  // namespace isotope
