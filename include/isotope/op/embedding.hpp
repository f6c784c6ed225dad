#pragma once
#include "fill.hpp"

namespace isotope {
namespace op {
/// Operands into (V, C) in accumulation format, dy (..., C), ids (...): into[ids[i]] += dy[i] in place, in ascending order of i, so the bits never vary.
struct embedding_grad {
  static constexpr std::string_view name = "embedding_grad";
  using gradient_of = struct embedding;
  static constexpr std::uint8_t inout = 1;
  static constexpr void infer(shape_rule& r) {
    const shape& into = r.dims(0);
    if (r.require(into.rank == 2 && r.dims(1)[-1] == into[1] && r.dims(1).rows() == r.dims(2).count(), "must be [V,C], [...,C], [...]") &&
        r.require(r.type(2) == dtype::i32, "ids must be i32"))
      r.yield(into, r.type(0));
  }
  static constexpr void shard(sharding& s);  // op/own_rows.hpp
};
/// Operands table (V, C), ids (...) i32.
struct embedding {
  struct constants {
    format_number format{};  // of the result; none: that of the table
    static constexpr constants of(const attributes& a) { return {.format = format_number(a.i[0] - 1)}; }
    constexpr operator attributes() const { return {.i = {1 + format.number}}; }
  };
  static constexpr std::string_view name = "embedding";
  static constexpr int weight = 0;  // the table
  static constexpr std::int64_t flops(const step_shapes&) { return 0; }
  static constexpr void infer(shape_rule& r) {
    if (!r.require(r.dims(0).rank == 2, "the table must be [V,C]") || !r.require(r.type(1) == dtype::i32, "ids must be i32")) return;
    shape y = r.dims(1);
    y.push(r.dims(0).axis(1));
    auto [format] = constants::of(r.attr);
    if (!format.given()) format = r.type(0);
    r.attr = constants{format};
    r.yield(y, r.format(format));
  }
  static constexpr void shard(sharding& s);  // op/own_rows.hpp
  static constexpr void gradient(pullback& g) {
    auto into = g.collected(0);
    if (!into.valid()) into = isotope::fill(g.machine(), g.x(0).dims(), accum_of(g.machine().program()));
    g.replace(0, apply<embedding_grad>(place::current(), {}, into, g.dy(), g.x(1)));
  }
};
}  // namespace op

/// y[..., c] = table[ids[...], c]. An id outside [0, V) gives a row of NaN and has no gradient.
///
/// @param table  (V, C)
/// @param ids    (...)  i32
/// @return       (..., C)
/// @error        ids of another format, a table of another rank
template <Machine M> constexpr tensor<M> embedding(tensor<M> table, tensor<M> ids, place at = place::current()) {
  return apply<op::embedding>(at, {}, table, ids);
}
}  // namespace isotope

#include "own_rows.hpp"
