#pragma once
#include "../core/tape.hpp"
#include "packed_rows.hpp"

namespace isotope {
/// Which rows of a sequence stand for it: the mean of all, or the first one, that of the [CLS] token.
enum class pooling_kind : std::uint8_t { mean, first };

namespace op {
/// Operands: x (N, C), starts (B + 1) i32.
struct pool {
  struct constants {
    pooling_kind how = pooling_kind::mean;
    bool normalise = false;
    static constexpr constants of(const attributes& a) { return {a.i[0] == 0 ? pooling_kind::mean : pooling_kind::first, a.i[1] != 0}; }
    constexpr operator attributes() const { return {.i = {std::int64_t(how), normalise}}; }
  };
  static constexpr std::string_view name = "pool";
  static constexpr operand_layout layout = operand_layout::rows;
  static constexpr double least_norm = 1e-12;
  static constexpr std::int64_t flops(const step_shapes& s) {
    const auto c = s.constants<pool>();
    return (c.how == pooling_kind::mean ? s.in[0].count() : 0) + (c.normalise ? 3 * s.out[0].count() : 0);
  }
  static constexpr void infer(shape_rule& r) {
    const shape& x = r.dims(0);
    if (!r.require(x.rank == 2, "rows must be [N,C]") || !packed_rows::check(r, 1) ||
        !r.require(is_floating(r.type(0)), "rows need a floating-point format"))
      return;
    r.attr = constants::of(r.attr);
    r.yield({r.dims(1)[0] - 1, x.axis(1)}, r.type(0));
  }
};
}  // namespace op

struct pooling_options {
  pooling_kind how = pooling_kind::mean;
  bool normalise = false;  // y[b] / max(|y[b]|, 1e-12), the Euclidean norm
};

/// y[b] = sum of x[n] / max(count, 1e-9) over the `count` rows n of sequence b, or y[b] = x[starts[b]]; then, if asked, divided by max(|y[b]|, 1e-12). It
/// makes one row of each of several sequences that are packed without padding. Sums are in accumulation format, in an order of the length alone.
///
/// @param x       (N, C)
/// @param starts  (B + 1) i32  ascending numbers, taken as in [0, N]; sequence b is rows starts[b] to starts[b + 1] - 1
/// @return        (B, C)       0 for empty sequences; not differentiable: model::bert_pooled does the same to whole sequences with differentiable ops
/// @error         rows of another rank, starts of another format
/// Source: Reimers & Gurevych 2019, arXiv:1908.10084, section 3; sentence-transformers, models/Pooling.py and models/Normalize.py.
template <Machine M> constexpr tensor<M> pool(tensor<M> x, tensor<M> starts, pooling_options o = {}, place at = place::current()) {
  return apply<op::pool>(at, op::pool::constants{o.how, o.normalise}, x, starts);
}
}  // namespace isotope
