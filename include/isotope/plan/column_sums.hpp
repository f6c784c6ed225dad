#pragma once
/// Column sums by the step that makes the tensor: the gradient of a bias is the sum of dy over all axes but the last, and the kernel that writes dy may be
/// able to add up its columns on the way (kernel_info::column_sums). The sum then becomes the last output of that step, which saves a pass over dy.
#include <array>
#include <cstdint>
#include <span>

#include "../core/trace.hpp"
#include "../op/sum.hpp"
#include "layout.hpp"

namespace isotope {

namespace plan_detail {

class column_sums {
 public:
  constexpr column_sums(trace& g, std::span<const kernel_info> table) : g_(g), table_(table) {}

  constexpr void run() {
    for (std::size_t i = 0; i < g_.nodes.size(); ++i)
      if (!g_.nodes[i].dead && g_.nodes[i].op == &info<op::sum>) join(std::int32_t(i));
  }

 private:
  trace& g_;
  std::span<const kernel_info> table_;

  constexpr const value& at(std::int32_t v) const { return g_.values[std::size_t(v)]; }
  /// Whether v holds all elements of its base in their order.
  constexpr bool whole(std::int32_t v) const {
    const value& x = at(v);
    return x.offset == 0 && g_.dense(v) && g_.dense(x.base) && x.dims.count() == at(x.base).dims.count();
  }
  /// Whether n sums over all axes but the last, of two or more, into the accumulation format.
  constexpr bool sums_columns(const node& n) const {
    const shape& x = at(n.in[0]).dims;
    const value& y = at(n.out[0]);
    return x.rank > 1 && op::sum::constants::of(n.attr).axes == (std::int64_t(1) << (x.rank - 1)) - 1 && y.type == accum_of(g_.program) &&
           !x.has_scalar() && g_.dense(n.out[0]);
  }
  /// Returns which output of the producer v is, or -1.
  constexpr int output_of(const node& producer, std::int32_t v) const {
    for (int k = 0; k < producer.outputs(); ++k)
      if (producer.out[std::size_t(k)] == v) return k;
    return -1;
  }
  /// Whether the kernel that runs `a` can also give the column sums of output k.
  constexpr bool able(const node& a, int k) const {
    const auto found = find_kernel(table_, a.op, g_.program);
    if (found < 0 || table_[std::size_t(found)].column_sums == nullptr) return false;
    std::array<shape, max_inputs> in{};
    std::array<shape, max_outputs> out{};
    for (int j = 0; j < a.inputs(); ++j) in[std::size_t(j)] = at(a.in[std::size_t(j)]).dims;
    for (int j = 0; j < a.outputs(); ++j) out[std::size_t(j)] = at(a.out[std::size_t(j)]).dims;
    const step_shapes s{{in.data(), std::size_t(a.inputs())}, {out.data(), std::size_t(a.outputs())}, &a.attr};
    const std::span<const micro_op> all(g_.micro_ops.data(), g_.micro_ops.size());
    return table_[std::size_t(found)].column_sums(s, all.subspan(std::size_t(a.body), std::size_t(a.body_size)), k);
  }

  /// Lets the step that makes the operand of node i make its sums, too, if it can.
  constexpr void join(std::int32_t i) {
    const node& n = g_.nodes[std::size_t(i)];
    if (n.accumulate != 0 || n.adds != 0 || !sums_columns(n)) return;
    auto v = n.in[0];
    const auto columns = at(v).dims.cols();
    for (; at(v).producer >= 0 && g_.nodes[std::size_t(at(v).producer)].op->kind == op_kind::view; v = at(v).base)
      if (at(v).base < 0 || !whole(v)) return;
    const auto j = at(v).producer;
    if (j < 0 || !g_.dense(v) || at(v).dims.rank < 2 || at(v).dims.cols() != columns) return;
    node& a = g_.nodes[std::size_t(j)];
    const int k = output_of(a, v), outputs = a.outputs();
    if (a.dead || a.summed >= 0 || a.accumulate != 0 || a.adds != 0 || a.phases != n.phases || k < 0 || outputs == max_outputs) return;
    if (!able(a, k)) return;
    a.out[std::size_t(outputs)] = n.out[0];
    a.summed = std::int8_t(k);
    a.effect = a.effect || n.effect;
    g_.values[std::size_t(n.out[0])].producer = j;
    g_.nodes[std::size_t(i)].out.fill(-1);
    g_.nodes[std::size_t(i)].dead = true;
  }
};

}  // namespace plan_detail

/// Joins sums over all axes but the last to the steps that make their operands, where kernels of the table can. Runs on a fused trace.
constexpr void join_column_sums(trace& g, std::span<const kernel_info> table) {
  for (const auto& k : table)
    if (k.column_sums != nullptr) return plan_detail::column_sums(g, table).run();
}

}  // namespace isotope
