#pragma once
#include <initializer_list>

#include "../core/scope.hpp"
#include "../op/add.hpp"
#include "../op/matmul.hpp"
#include "lora.hpp"

namespace isotope::nn {

/// How the devices of a tensor group divide a linear layer y (..., out) = x (..., in) weight^T + bias (training_options::mesh).
///
/// columns: each device computes some columns of y from all of x, in groups: three for queries, keys and values, two for gate and up. The next layer works on those
///          columns, up to one that is divided by rows.
/// rows:    each device multiplies its columns of x by the weight's; the products are added up, and then the bias is added.
/// whole:   each device computes the whole layer.
/// One that is divided by columns and one by rows take one all_reduce forward and one backward.
///
/// Columns of heads consist of `units`, of which each device gets whole ones: heads, or key-value heads with their queries. Where units do not divide, the last device
/// has fewer, and zeros in place of the others, which stay zeros; the rows of the next layer have the same units.
/// Source: Shoeybi et al. 2019, arXiv:1909.08053, section 3.
struct parallel {
  enum class kind : std::uint8_t { whole, columns, rows } how = kind::whole;
  axis_split groups{};  // of the columns of y; none: they are one group

  static constexpr parallel columns() { return {kind::columns, axis_split::along(0)}; }
  static constexpr parallel columns(std::initializer_list<std::int64_t> groups, std::int64_t units = 0) {
    return {kind::columns, axis_split::in_groups(0, groups).in_units(units)};
  }
  static constexpr parallel rows(std::int64_t units = 0) { return {kind::rows, axis_split::along(1).in_units(units)}; }

  /// Of the weight (out, in), and of the bias (out).
  constexpr axis_split of_weight() const { return groups; }
  constexpr axis_split of_bias() const { return how == kind::columns ? groups : axis_split{}; }
};

/// y = x weight^T + bias.  x (..., in), weight (out, in) ~ N(0, deviation^2), bias (out) = 0; y (..., out). Where the scope has adapters
/// for this path, their product is added (nn/lora.hpp).
template <Machine M>
constexpr tensor<M> linear(scope<M> s, tensor<M> x, std::int64_t out, double deviation = 0.02, bool bias = true, parallel how = {},
                           place at = place::current()) {
  const param_options w{.init = init::normal(deviation), .split = how.of_weight()}, b{.init = init::zeros, .split = how.of_bias()};
  auto y = matmul(x, transpose(s.param("weight", {out, x.cols()}, w, at), at), 1, at);
  if (bias) y = add(y, s.param("bias", {out}, b, at), at);
  if (s.adapters == nullptr || !s.adapters->adapts(s.path.view())) return y;
  return adapt(s, x, y, *s.adapters, how.how == parallel::kind::rows ? how.groups : axis_split{}, how.of_bias(), at);
}

}  // namespace isotope::nn
