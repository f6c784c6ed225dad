#pragma once
/// Records the head of a model, its loss and their gradients in chunks of rows (head_policy), where the backward pass would begin with the loss.
#include <cstdint>
#include <vector>

#include "../core/tape.hpp"
#include "../op/add.hpp"
#include "../op/cast.hpp"
#include "../op/cross_entropy.hpp"
#include "../op/div.hpp"
#include "../op/fill.hpp"
#include "../op/matmul.hpp"
#include "../op/mul.hpp"
#include "../op/select.hpp"
#include "../op/sum.hpp"
#include "head_policy.hpp"
#include "pad_rows.hpp"

namespace isotope::plan_detail {

/// The nodes that chunks replace: logits = matmul(x, w), loss = cross_entropy(logits, targets).
struct head_nodes {
  std::int32_t product = -1, loss = -1;
  head_obstacle obstacle = head_obstacle::none;
};
/// Finds the head of a forward trace that returns `loss`.
constexpr head_nodes find_head(const trace& g, std::int32_t loss) {
  const value& y = g.values[std::size_t(loss)];
  if (y.base >= 0 || y.producer < 0) return {-1, -1, head_obstacle::no_cross_entropy};
  const node& f = g.nodes[std::size_t(y.producer)];
  if (f.op != &info<op::cross_entropy> || f.out[0] != loss) return {-1, -1, head_obstacle::no_cross_entropy};
  for (const node& n : g.nodes)
    for (int k = 0; k < n.inputs(); ++k)
      for (int j = 0; j < f.outputs(); ++j)
        if (n.in[std::size_t(k)] == f.out[std::size_t(j)]) return {-1, -1, head_obstacle::loss_is_read};
  const std::int32_t product = gemm_for(g, std::size_t(y.producer), loss);
  if (product < 0 || g.nodes[std::size_t(product)].op != &info<op::matmul>) return {-1, -1, head_obstacle::no_product};
  const value& x = g.values[std::size_t(g.nodes[std::size_t(product)].in[0])];
  if (x.dims[-1] > 1 && x.strides[std::size_t(x.dims.rank - 1)] != 1) return {-1, -1, head_obstacle::columns};
  if (x.dims.rows() < 2) return {-1, -1, head_obstacle::one_row};
  return {product, y.producer, head_obstacle::none};
}

/// Returns the rows of a chunk: whole groups of 128, the rows of a tile of a gemm, if there are so many.
constexpr std::int64_t chunk_rows(std::int64_t rows, std::int64_t chunks) {
  const std::int64_t n = (rows + chunks - 1) / chunks;
  return n <= 128 ? n : (n + 127) / 128 * 128;
}

/// The loss, and the gradients of the operands of the product; -1 for an operand that wants none.
struct head_results {
  std::int32_t loss = -1, dx = -1, dw = -1;
  std::int32_t chunks = 0;
};

class head_recorder {
 public:
  using T = tensor<tape>;
  constexpr head_recorder(tape& t, const node& product, const node& loss, std::int32_t dloss)
      : t_(t), product_(t, product), loss_(loss), dloss_(dloss) {}

  constexpr head_results record(std::int64_t chunks) {
    const T x = product_.x(0), targets{&t_, loss_.in[1]};
    const std::int64_t R = x.dims().rows(), step = chunk_rows(R, chunks);
    x_ = reshape(x, {R, x.cols()});
    targets_ = reshape(targets, {R});
    counts_ = counted_rows();
    if (product_.wants(0)) r_.dx = t_.g.add_value(x.dims(), product_.grad_type(0), value_kind::temp);
    for (std::int64_t first = 0; first < R && t_.ok(); first += step, ++r_.chunks) record_chunk(first, first + step < R ? step : R - first);
    if (!t_.ok()) return {};
    if (r_.dw >= 0 && op::matmul::column_major(product_.x(1))) r_.dw = transpose(T{&t_, r_.dw}).id;
    r_.loss = mean().id;
    return r_;
  }

 private:
  tape& t_;
  pullback product_;
  node loss_;
  std::int32_t dloss_;
  T x_, targets_, counts_;
  head_results r_;
  std::vector<std::int32_t> losses_, counted_;  // of each chunk: its mean loss, and how many of its rows count

  constexpr dtype accum() const { return accum_of(t_.program()); }
  constexpr T number(double x) { return fill(t_, {}, accum(), x); }

  /// 1 for each row whose target is a class, else 0. Numbers from 2^24 on are rounded in f32, which keeps their order.
  constexpr T counted_rows() {
    const T ids = cast(targets_, accum()), zero = number(0), classes = number(double(op::cross_entropy::constants::of(loss_.attr).classes));
    return where(less(ids, classes), where(less(ids, zero), zero, number(1)), zero);
  }

  constexpr void record_chunk(std::int64_t first, std::int64_t rows) {
    const auto at = place::current();
    const auto alpha = op::matmul::constants::of(product_.attr).alpha;
    const T w = product_.x(1), x = narrow(x_, 0, first, rows), targets = narrow(targets_, 0, first, rows);
    const T logits = apply<op::matmul>(at, product_.attr, x, w);
    const auto f = apply_op<op::cross_entropy>(&t_, {logits.id, targets.id}, loss_.attr, at);
    losses_.push_back(f.out[0]);
    counted_.push_back(sum(narrow(counts_, 0, first, rows)).id);
    const T dlogits{
        &t_,
        apply_op<op::cross_entropy_grad>(&t_, {logits.id, targets.id, f.out[1], f.out[2], dloss_, targets_.id}, loss_.attr, at).out[0]};
    if (r_.dx >= 0) {
      const T dx = op::matmul::gemm(dlogits, transpose(w), product_.grad_type(0), alpha);
      write_into(dx.id, r_.dx, first * x.cols());
    }
    if (!product_.wants(1)) return;
    const dtype type = product_.grad_type(1);
    const T dw = op::matmul::column_major(w) ? op::matmul::gemm(transpose(dlogits), x, type, alpha)
                                             : op::matmul::gemm(transpose(x), dlogits, type, alpha);
    if (!t_.ok()) return;
    t_.g.nodes.back().effect = true;  // what is read is the sum, not the product of this chunk
    if (r_.dw >= 0) {
      write_into(dw.id, r_.dw, 0);
      t_.g.nodes.back().adds = 1;
    }
    r_.dw = dw.id;
  }
  /// Lets the last node write its result v into the bytes of `whole`, from element `offset` on.
  constexpr void write_into(std::int32_t v, std::int32_t whole, std::int64_t offset) {
    if (!t_.ok()) return;
    value& part = t_.g.values[std::size_t(v)];
    part.base = whole;
    part.offset = offset;
    t_.g.nodes.back().effect = true;  // what is read is the whole, not this part
  }

  /// The mean loss of all rows that count; 0 if none does.
  constexpr T mean() {
    T all{&t_, counted_[0]}, loss;
    for (std::size_t k = 1; k < counted_.size(); ++k) all = add(all, T{&t_, counted_[k]});
    const T one = number(1), most = where(less(all, one), one, all);
    for (std::size_t k = 0; k < counted_.size(); ++k) {
      const T share = mul(T{&t_, losses_[k]}, div(T{&t_, counted_[k]}, most));
      loss = k == 0 ? share : add(loss, share);
    }
    return loss;
  }
};

}  // namespace isotope::plan_detail
