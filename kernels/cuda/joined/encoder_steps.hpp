#pragma once
/// Recognises a plan that is a post-norm encoder of packed texts: rows of two tables and a vector are added and normalised; each layer is attention and an MLP with erf GELU, both
/// with biases, the residual and a norm behind them; and the rows of each text are pooled. Nothing but the plan says so, neither the names of a model nor of its parameters.
#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <isotope/backend/cuda/plan_dispatches.hpp>
#include <isotope/op/add.hpp>
#include <isotope/op/attention_packed.hpp>
#include <isotope/op/embedding.hpp>
#include <isotope/op/gelu.hpp>
#include <isotope/op/layer_norm.hpp>
#include <isotope/op/matmul.hpp>
#include <isotope/op/pool.hpp>

namespace isotope::cuda {

class encoder_steps {
 public:
  /// A product's weights (O, K), its bias, and the norm behind it.
  struct product {
    view weight, bias;
  };
  struct norm {
    view weight, bias;
    double epsilon = 0;
  };
  struct layer {
    product qkv, projection, up, down;
    norm middle, last;
  };
  std::array<view, 2> tables, ids;  // (V, C), (N) i32
  view added;                       // (C)
  norm first;
  std::vector<layer> layers;
  view starts, y;
  std::int64_t N = 0, C = 0, F = 0, H = 0;
  double scale = 0;
  op::pool::constants pooling;

  encoder_steps(const plan_view& p, const region_addresses& base) : p_(p), base_(base) { why_ = read(); }
  /// Returns why the plan is none; empty if it is one.
  std::string_view why() const { return why_; }
  static constexpr std::size_t steps_before = 4, steps_of_layer = 7;

 private:
  const plan_view& p_;
  const region_addresses& base_;
  std::string_view why_;

  const step& at(std::size_t i) const { return p_.steps[i]; }
  view in(std::size_t i, int k) const { return bind(p_.operands[std::size_t(at(i).operands + k)], base_); }
  view out(std::size_t i, int k) const { return in(i, at(i).inputs + k); }
  const micro_op& body(std::size_t i, int k) const { return p_.micro_ops[std::size_t(at(i).body + k)]; }
  bool is(std::size_t i, const op_info* op, int inputs, int instructions) const {
    const step& s = at(i);
    return s.op == op && s.inputs == inputs && s.body_size == instructions && s.summed < 0 && s.phases == phase_always && s.adds == 0;
  }
  static bool rows(const view& v, std::int64_t n, std::int64_t c) {
    return v.type == dtype::bf16 && v.dims.rank == 2 && v.dims[0] == n && v.dims[1] == c && v.strides[1] == 1 && v.strides[0] == c &&
           v.at % 16 == 0;
  }
  /// A vector of n elements, or an operand of a body that has it in every row.
  static bool vector(const view& v, std::int64_t n) {
    const int r = v.dims.rank;
    return v.type == dtype::bf16 && (r == 1 || (r == 2 && (v.dims[0] == 1 || v.strides[0] == 0))) && v.dims[r - 1] == n &&
           v.strides[std::size_t(r - 1)] == 1 && v.at % 16 == 0;
  }
  /// Whether an instruction adds two values, in any order, and rounds the sum to bf16.
  static bool adds(const micro_op& m, int a, int b, int store) {
    const bool both = (m.arg[0] == a && m.arg[1] == b) || (m.arg[0] == b && m.arg[1] == a);
    return m.op == &info<op::add> && both && m.type == dtype::bf16 && m.store == store;
  }

  std::string_view read() {
    constexpr auto other = "the plan is no encoder with a norm behind each half";
    const std::size_t n = p_.steps.size();
    if (!p_.late.empty() || n < steps_before + steps_of_layer + 1 || (n - steps_before - 1) % steps_of_layer != 0) return other;
    if (!read_tables()) return other;
    std::uint64_t x = out(3, 0).at;
    for (std::size_t i = steps_before; i + 1 < n; i += steps_of_layer) {
      if (!read_layer(i, x)) return other;
      x = out(i + 6, 0).at;
    }
    if (!is(n - 1, &info<op::pool>, 2, 0) || in(n - 1, 0).at != x || !rows(in(n - 1, 0), N, C)) return other;
    y = out(n - 1, 0);
    const view of = in(n - 1, 1);
    if (of.at != starts.at || !rows(y, starts.dims[0] - 1, C)) return other;
    pooling = op::pool::constants::of(at(n - 1).attr);
    for (std::size_t i = steps_before; i < n - 1; ++i)
      if (at(i).op == &info<op::matmul> && op::matmul::constants::of(at(i).attr).batch_invariant)
        return "rows are to have the same bits in every batch";
    return {};
  }
  bool read_tables() {
    for (std::size_t i = 0; i < 2; ++i) {
      if (!is(i, &info<op::embedding>, 2, 0)) return false;
      tables[i] = in(i, 0), ids[i] = in(i, 1);
      N = ids[0].dims.count(), C = tables[0].dims.cols();
      const bool dense = ids[i].dims.rank == 1 && ids[i].dims[0] == N && ids[i].strides[0] == 1 && ids[i].type == dtype::i32;
      if (!dense || !rows(tables[i], tables[i].dims[0], C) || !rows(out(i, 0), N, C)) return false;
    }
    const bool sums = at(2).body_size == 2 && is(2, at(2).op, 3, 2) && at(2).outputs == 1 && adds(body(2, 0), 0, 1, -1) &&
                      adds(body(2, 1), int(max_inputs), 2, 0) && rows(out(2, 0), N, C);
    if (!sums) return false;
    int found = 0;
    for (int k = 0; k < 3; ++k) {
      const view v = in(2, k);
      if (v.at == out(0, 0).at && rows(v, N, C)) found |= 1;
      else if (v.at == out(1, 0).at && rows(v, N, C)) found |= 2;
      else if (vector(v, C)) found |= 4, added = v;
    }
    return found == 7 && read_norm(3, out(2, 0).at, first);
  }
  bool read_norm(std::size_t i, std::uint64_t x, norm& to) {
    if (!is(i, &info<op::layer_norm>, 3, 0) || in(i, 0).at != x || !rows(in(i, 0), N, C) || !rows(out(i, 0), N, C)) return false;
    to = {in(i, 1), in(i, 2), op::layer_norm::constants::of(at(i).attr).epsilon};
    return vector(to.weight, C) && vector(to.bias, C);
  }
  /// The product of x (N, K) with weights of O lines, and its bias; `inputs` and `instructions` count what is fused with it, too.
  bool read_product(std::size_t i, std::uint64_t x, std::int64_t K, std::int64_t O, int inputs, int instructions, product& to) {
    if (!is(i, &info<op::matmul>, inputs, instructions) || at(i).outputs != 1) return false;
    const auto c = op::matmul::constants::of(at(i).attr);
    if (c.operands != 2 || c.packed || c.a8 || c.alpha != 1 || c.beta != 0 || in(i, 0).at != x || !rows(in(i, 0), N, K) ||
        !rows(out(i, 0), N, O))
      return false;
    to = {in(i, 1), in(i, 2)};
    const view& w = to.weight;
    return w.type == dtype::bf16 && w.dims.rank == 2 && w.dims[0] == K && w.dims[1] == O && w.strides[0] == 1 && w.strides[1] == K &&
           w.at % 16 == 0 && vector(to.bias, O) && adds(body(i, 0), int(gemm_result), 2, instructions == 1 ? 0 : -1);
  }
  /// As the other one, with the residual.
  bool read_half(std::size_t i, std::uint64_t x, std::int64_t K, std::uint64_t residual, product& to, norm& behind) {
    return read_product(i, x, K, C, 4, 2, to) && adds(body(i, 1), int(max_inputs), 3, 0) && in(i, 3).at == residual &&
           rows(in(i, 3), N, C) && read_norm(i + 1, out(i, 0).at, behind);
  }
  bool read_layer(std::size_t i, std::uint64_t x) {
    layer l;
    if (!read_product(i, x, C, 3 * C, 3, 1, l.qkv)) return false;
    const std::uint64_t qkv = out(i, 0).at;
    if (!is(i + 1, &info<op::attention_packed>, 4, 0) || !rows(out(i + 1, 0), N, C)) return false;
    for (int k = 0; k < 3; ++k) {
      const view v = in(i + 1, k);
      if (v.at != qkv + std::uint64_t(2 * k * C) || v.strides[0] != 3 * C || v.strides[1] != 1 || v.dims[0] != N || v.dims[1] != C)
        return false;
    }
    const auto c = op::attention_packed::constants::of(at(i + 1).attr);
    const view of = in(i + 1, 3);
    if (layers.empty()) starts = of, scale = c.scale, H = c.heads, F = out(i + 4, 0).dims.cols();
    if (c.causal || c.heads != H || c.scale != scale || of.at != starts.at || starts.type != dtype::i32 || starts.dims.rank != 1)
      return false;
    if (!read_half(i + 2, out(i + 1, 0).at, C, x, l.projection, l.middle)) return false;
    const std::uint64_t middle = out(i + 3, 0).at;
    if (!read_product(i + 4, middle, C, F, 3, 2, l.up)) return false;
    const micro_op& gelu = body(i + 4, 1);
    if (gelu.op != &info<op::gelu_erf> || gelu.arg[0] != int(max_inputs) || gelu.type != dtype::bf16 || gelu.store != 0) return false;
    if (!read_half(i + 5, out(i + 4, 0).at, F, middle, l.down, l.last) || l.middle.epsilon != l.last.epsilon) return false;
    if (!layers.empty() && l.last.epsilon != layers.front().last.epsilon) return false;
    layers.push_back(l);
    return true;
  }
};

}  // namespace isotope::cuda
