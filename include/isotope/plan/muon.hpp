#pragma once
/// Muon: which matrices it updates, and the gemms that orthogonalise a direction.
///
/// For a matrix W (R, C) with gradient g, and c as op::adamw clips:
///   m = momentum m + c g,   u = c g + momentum m,   X = u / (|u| + 1e-7), |u| the Frobenius norm
///   five times X = a X + b A X + c A A X with A = X X^T, where R > C with A = X^T X from the right: (a, b, c) = (3.4445, -4.7750, 2.0315)
///   W = W - lr decay W - lr s X,   s = 0.2 sqrt(max(R, C))
/// X has singular values of about [0.7, 1.2] in place of those of u. It is stored in the program's format, as the reference stores it in bf16; sums
/// are wider. With this s an update has the root mean square of AdamW's, 0.2, for any shape, so that both use one learning rate and one decay: a step
/// has no other.
/// Sources: Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/; Bernstein & Newhouse 2024, arXiv:2409.20325; s: Liu et al. 2025,
/// arXiv:2502.16982, equation 4.
#include <cstdint>
#include <vector>

#include "../core/square_root.hpp"
#include "../core/tape.hpp"
#include "../op/cast.hpp"
#include "../op/div.hpp"
#include "../op/matmul.hpp"
#include "../op/muon.hpp"
#include "../op/sqrt.hpp"
#include "../op/square.hpp"
#include "../op/sum.hpp"
#include "../op/view.hpp"
#include "options.hpp"

namespace isotope {

namespace plan_detail {

/// How the forward pass reads one parameter.
struct param_readers {
  bool matmuls = false;  // a matmul reads it
  bool others = false;   // something else does
  bool last = false;     // a matmul reads it whose result enters no further matmul with a weight: the output layer
};
constexpr std::vector<param_readers> readers_of_params(const trace& g) {
  std::vector<param_readers> r(g.values.size(), param_readers{});  // by value
  std::vector<std::uint8_t> continues(g.values.size(), 0);         // by value: whether it enters a matmul with a weight
  const auto weight = [&](std::int32_t v) { return v >= 0 && g.values[std::size_t(g.root(v))].kind == value_kind::param; };
  for (std::size_t i = g.nodes.size(); i-- > 0;) {
    const node& n = g.nodes[i];
    const int factors = n.op->gemm_operands;
    bool onward = false;
    for (int k = 0; k < n.outputs(); ++k) onward = onward || continues[std::size_t(n.out[std::size_t(k)])] != 0;
    for (int k = 0; k < n.inputs(); ++k) {
      const auto v = n.in[std::size_t(k)];
      if (!weight(v)) {
        if (onward || (k < factors && weight(n.in[std::size_t(1 - k)]))) continues[std::size_t(v)] = 1;
        continue;
      }
      if (n.op->kind == op_kind::view) continue;
      const auto root = g.root(v);
      const shape &dims = g.values[std::size_t(v)].dims, &whole = g.values[std::size_t(root)].dims;
      auto& by = r[std::size_t(root)];
      const bool as_factor = k < factors && dims.rank == 2 && dims.count() == whole.count();
      by.matmuls = by.matmuls || as_factor;
      by.others = by.others || !as_factor;
      by.last = by.last || (as_factor && !onward);
    }
  }
  return r;
}

}  // namespace plan_detail

/// Decides on a forward trace which parameters Muon updates: none unless it is the optimiser.
/// @error Muon is asked for on a parameter that is no matrix, or there is no matrix
constexpr void choose_matrices(tape& t, optimizer_kind optimizer) {
  if (!t.ok()) return;
  trace& g = t.g;
  if (optimizer != optimizer_kind::muon) {
    for (auto& p : g.params) p.muon = 0;
    return;
  }
  const auto readers = plan_detail::readers_of_params(g);
  bool any = false;
  for (auto& p : g.params) {
    const shape dims = g.values[std::size_t(p.value)].dims;
    message m;
    if (p.muon > 0 && dims.rank != 2) {
      g.error = m << "parameter '" << p.path << "' " << dims << " is no matrix, which muon needs: leave its muon at -1";
      return;
    }
    const auto& by = readers[std::size_t(p.value)];
    const bool hidden = dims.rank == 2 && by.matmuls && !by.others && !by.last;
    p.muon = p.trainable && dims.count() > 0 && (p.muon < 0 ? hidden : p.muon > 0) ? 1 : 0;
    any = any || p.muon > 0;
  }
  if (!any)
    g.error
        << "muon finds no matrix of a hidden layer that is trained: set optimizer to adamw, or muon to 1 in the param_options of a matrix";
}

namespace plan_detail {

/// Returns the factor s on the direction of a matrix.
constexpr double muon_factor(const shape& w) { return 0.2 * square_root(double(w[0] > w[1] ? w[0] : w[1])); }

/// Returns X of u (R, C), which is in accumulation format.
constexpr tensor<tape> orthogonalized(tensor<tape> u, dtype stored) {
  constexpr double a = 3.4445, b = -4.7750, c = 2.0315;
  const bool tall = u.dims()[0] > u.dims()[1];
  auto x = cast(div(u, shift(sqrt(sum(square(u))), 1e-7)), stored);
  for (int i = 0; i < 5; ++i) {
    const auto gram = tall ? matmul(transpose(x), x) : matmul(x, transpose(x)), both = matmul(gram, gram, gram, c, b);
    x = tall ? matmul(x, both, x, 1, a) : matmul(both, x, x, 1, a);
  }
  return x;
}

/// Records momentum and gemms for a matrix whose gradient is g, in the last phase. Returns X.
constexpr std::int32_t muon_direction(tape& t, std::int32_t m, std::int32_t g, std::int32_t norm, std::int32_t loss, bool clips) {
  const std::size_t first = t.g.nodes.size();
  const std::int32_t in[4] = {m, g, norm, loss};
  const op::momentum::constants clip{.clips = clips, .rate_scale = 0};  // a momentum has no learning rate
  const auto u = t.record(rules<op::momentum>, in, clip, place::current(), 0).out[1];
  if (!t.ok()) return -1;
  const auto x = orthogonalized({&t, u}, t.program());
  for (std::size_t i = first; i < t.g.nodes.size(); ++i) t.g.nodes[i].phases = phase_last;
  return x.id;
}

}  // namespace plan_detail

}  // namespace isotope
