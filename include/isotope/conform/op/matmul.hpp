#pragma once
#include "../../op/add.hpp"
#include "../../op/arrange.hpp"
#include "../../op/matmul.hpp"
#include "../../op/view.hpp"
#include "../reduction_axes.hpp"
#include "../spec.hpp"

namespace isotope::conform {

/// a (..., M, K), b (..., K, N) by index, batches broadcast.
struct product_shape {
  shape a, b, y, batch;
  std::int64_t M, K, N;
  product_shape(const shape& sa, const shape& sb) : a(sa), b(sb), M(sa[-2]), K(sa[-1]), N(sb[-1]) {
    shape ba, bb;
    for (int i = 0; i + 2 < a.rank; ++i) ba.push(a.axis(i));
    for (int i = 0; i + 2 < b.rank; ++i) bb.push(b.axis(i));
    batch = broadcast(ba, bb).s;
    y = batch;
    y.push(M);
    y.push(N);
    batch_a_ = ba;
    batch_b_ = bb;
  }
  /// Calls f(offset of the matrix in a, in b, in y) for each matrix of the batch.
  template <class F> void for_each(F&& f) const {
    for_each_index(batch, [&](std::int64_t p, const extents& at) {
      f(repeated_position(batch_a_, at, batch.rank) * M * K, repeated_position(batch_b_, at, batch.rank) * K * N, p * M * N);
    });
  }

 private:
  shape batch_a_, batch_b_;
};

/// a I = a, bit for bit.
inline law::sides identity_law(std::span<const tensor<tape>> x, const attributes& a) {
  return {apply<op::matmul>(place::current(), a, x[0], x[1]), x[0]};
}
/// a (b + c) = a b + a c
inline law::sides sum_law(std::span<const tensor<tape>> x, const attributes& a) {
  const auto at = place::current();
  return {apply<op::matmul>(at, a, x[0], x[1] + x[2]), apply<op::matmul>(at, a, x[0], x[1]) + apply<op::matmul>(at, a, x[0], x[2])};
}
/// (a b)^T = b^T a^T
inline law::sides transpose_law(std::span<const tensor<tape>> x, const attributes& a) {
  const auto at = place::current();
  return {transpose(apply<op::matmul>(at, a, transpose(x[1]), transpose(x[0]))), apply<op::matmul>(at, a, x[0], x[1])};
}
/// (4 a) b = 4 (a b), bit for bit: a power of two changes only exponents.
inline law::sides factor_law(std::span<const tensor<tape>> x, const attributes& a) {
  const auto at = place::current();
  const auto four = [](tensor<tape> t) { return t + t; };
  return {apply<op::matmul>(at, a, four(four(x[0])), x[1]), four(four(apply<op::matmul>(at, a, x[0], x[1])))};
}
/// A product with a weight in blocks has the bits of one with its elements in the format of a, which an embedding of all its rows gives.
inline law::sides blocks_law(std::span<const tensor<tape>> x, const attributes& a) {
  const auto at = place::current();
  const auto ids = cast(iota(*x[1].machine, x[1].cols()), dtype::i32);
  const auto rows =
      apply<op::embedding>(at, op::embedding::constants{.format = op::matmul::element_type(x[0].type())}, transpose(x[1]), ids);
  return {apply<op::matmul>(at, a, x[0], x[1]), apply<op::matmul>(at, a, x[0], transpose(rows))};
}
/// A product has the rows of products of its first row and of the other rows, bit for bit, where it is batch invariant or rounds activations to 8 bits.
inline law::sides rows_law(std::span<const tensor<tape>> x, const attributes& a) {
  const auto at = place::current();
  const auto of = [&](std::int64_t first, std::int64_t count) { return apply<op::matmul>(at, a, narrow(x[0], 0, first, count), x[1]); };
  return {concat({of(0, 1), of(1, x[0][0] - 1)}, 0), apply<op::matmul>(at, a, x[0], x[1])};
}
/// The sums of both sides, and four roundings to the storage format: of b + c, of each product, of their sum.
inline void product_law_slack(const call& c, answer& right) {
  const product_shape s(c.in[0].dims, c.in[1].dims);
  const double roundings = 2 * (8 + c.on.chain_of(s.K)) * c.on.u() + 4 * std::fmax(c.on.stored(), c.on.u());
  for (std::int64_t m = 0; m < s.M; ++m)
    for (std::int64_t n = 0; n < s.N; ++n) {
      double magnitude = 0;
      for (std::int64_t k = 0; k < s.K; ++k)
        magnitude +=
            std::fabs(c.in[0][m * s.K + k]) * (std::fabs(c.in[1][k * s.N + n]) + (c.in.size() > 2 ? std::fabs(c.in[2][k * s.N + n]) : 0));
      right.slack[std::size_t(m * s.N + n)] = roundings * magnitude;
    }
}

template <> struct op_spec<op::matmul> : spec_basis {
  static constexpr std::array laws{law{"identity", &identity_law, nullptr},
                                   law{"sum", &sum_law, &product_law_slack},
                                   law{"transpose", &transpose_law, &product_law_slack},
                                   law{"factor", &factor_law, nullptr},
                                   law{"blocks", &blocks_law, nullptr},
                                   law{"rows", &rows_law, nullptr}};
  static constexpr std::array inputs{operand_role{"a"}, operand_role{"b"}, operand_role{.name = "c", .optional = true}};
  static constexpr std::array outputs{result_role{"y"}};
  static constexpr std::array fields{
      attribute_field{"alpha", attribute_kind::number, 0, 1}, attribute_field{"beta", attribute_kind::number, 1, 0},
      attribute_field{"format", attribute_kind::format_or_none, 0, 0}, attribute_field{"a8", attribute_kind::flag, 5, 0}};
  static constexpr std::array boundary{0.0, -0.0, infinity, nan, 0x1p-120};
  static constexpr numeric_policy policy{
      .sums = "K in blocks, ascending, in f32", .contracts = true, .nan = "in, then out; c counts where beta is not 0"};

  /// |e| <= (8 + chain) u sum |a b|, NMSE <= 1e-15 (K + 8); in 16 bits 6e-6. Elements of b in blocks are those rounded to the format of a. With a8, b is not rounded, and a are the rounded activations: rounding them
  /// costs sum |b| d / 2 at most, d the scale of their block.
  static void reference(const call& c, std::span<answer> y) {
    const product_shape s(c.in[0].dims, c.in[1].dims);
    const auto is = c.constants<op::matmul>();
    const double alpha = is.alpha, beta = is.beta;
    y[0].resize(s.y.count());
    const bool blocks = in_blocks(c.in[1].type);
    const dtype element = op::matmul::element_type(c.in[0].type);
    s.for_each([&](std::int64_t a, std::int64_t b, std::int64_t at) {
      quantized::rounded_block rounded;
      for (std::int64_t m = 0; m < s.M; ++m)
        for (std::int64_t k = 0; k < s.K; ++k) {
          if (is.a8 && k % quantized::block == 0) rounded = quantized::round_activations(&c.in[0].at[std::size_t(a + m * s.K + k)]);
          const double x = is.a8 ? rounded[k % quantized::block] : c.in[0][a + m * s.K + k];
          for (std::int64_t n = 0; n < s.N; ++n) {
            const double w = c.in[1][b + k * s.N + n], v = x * (blocks && !is.a8 ? conform::rounded(element, w) : w);
            y[0].add(at + m * s.N + n, v, std::fabs(v));
          }
        }
    });
    const double roundings = (8 + c.on.chain_of(s.K)) * c.on.u();
    for (std::int64_t i = 0; i < s.y.count(); ++i) {
      const double extra = beta == 0 || c.in.size() < 3 ? 0 : beta * c.in[2][i];
      y[0].set(i, alpha * y[0].value[std::size_t(i)] + extra,
               (std::fabs(alpha) * y[0].slack[std::size_t(i)] + std::fabs(extra)) * roundings);
    }
    const dtype type = is.format.given() ? is.format.type() : blocks ? element : c.in[0].type == c.in[1].type ? c.in[0].type : c.on.accum();
    if (type == c.on.accum()) y[0].nmse = 1e-15 * double(s.K + 8);
  }
  /// da = alpha dy b^T and db = alpha a^T dy are gemms, too: their chains are N and the rows. Broadcast batches are summed afterwards.
  static void gradient(const call& c, std::span<const array> dy, std::span<answer> dx) {
    const product_shape s(c.in[0].dims, c.in[1].dims);
    const double alpha = c.constants<op::matmul>().alpha;
    dx[0].resize(s.a.count());
    dx[1].resize(s.b.count());
    s.for_each([&](std::int64_t a, std::int64_t b, std::int64_t at) {
      for (std::int64_t m = 0; m < s.M; ++m)
        for (std::int64_t k = 0; k < s.K; ++k)
          for (std::int64_t n = 0; n < s.N; ++n) {
            const double g = alpha * dy[0][at + m * s.N + n];
            const double va = g * c.in[1][b + k * s.N + n], vb = g * c.in[0][a + m * s.K + k];
            dx[0].add(a + m * s.K + k, va, std::fabs(va));
            dx[1].add(b + k * s.N + n, vb, std::fabs(vb));
          }
    });
    const double batches = double(s.batch.count());
    // Where batches were broadcast, their gemms form one longer gemm or are summed; where they are stored in 16 bits before, each is rounded.
    const auto roundings = [&](std::int64_t terms, const shape& mine) {
      const double repeats = std::fmax(1, batches * double(s.M * s.K * s.N) / std::fmax(1, double(mine.count()) * double(terms)));
      const double summed = repeats > 1 ? sum_roundings(repeats) : 0;
      return (8 + c.on.chain_of(std::int64_t(repeats) * terms) + summed) * c.on.u() + (repeats > 1 ? c.on.stored() : 0);
    };
    dx[0].scale_slack(roundings(s.N, s.a));
    dx[1].scale_slack(roundings(s.M, s.b));
    if (dx.size() > 2 && c.in.size() > 2) {
      dx[2].resize(s.y.count());
      const double beta = c.constants<op::matmul>().beta;
      for (std::int64_t i = 0; i < s.y.count(); ++i) dx[2].set(i, beta * dy[0][i], c.on.u() * std::fabs(beta * dy[0][i]));
    }
  }

  static void cases(case_sink& s) {
    const op::matmul::constants plain;
    // Sizes of tiles of 4 to 128 and one past them, vectors, nothing. Fast runs take order k if bit k of `few` is set: drivers on the processor
    // compile a kernel for each memory order, divisibility and length of the operands.
    struct gemm_size {
      std::int64_t M, K, N;
      int few;
    };
    constexpr gemm_size sizes[] = {{1, 1, 1, 1},      {2, 3, 5, 2},    {7, 1, 4, 4},    {1, 13, 1, 8},   {17, 33, 9, 15}, {16, 16, 16, 1},
                                   {32, 32, 32, 2},   {33, 5, 33, 4},  {64, 64, 64, 9}, {65, 31, 67, 1}, {5, 129, 3, 2},  {128, 64, 128, 1},
                                   {129, 127, 65, 1}, {1, 768, 64, 4}, {96, 1, 96, 1},  {3, 1024, 2, 0}, {1024, 3, 2, 1}, {13, 5, 29, 0},
                                   {3, 4000, 5, 1},   {4, 777, 33, 9}, {2, 0, 3, 15},   {0, 4, 3, 15},   {4, 3, 0, 15}};
    const bool fast = s.how() == strength::fast;
    for (const auto& [M, K, N, few] : sizes)
      for (int order = 0; order < 4; ++order) {
        if (fast && (few >> order & 1) == 0) continue;
        operand_recipe a = s.x({M, K}), b = s.x({K, N});
        if (order & 1) a = ordered(a, {1, 0});
        if (order & 2) b = ordered(b, {1, 0});
        s.add({a, b}, plain, true);
      }
    s.add({s.x({3, 700}), s.x({700, 400})}, plain, !fast);  // more of b than is packed at a time
    if (!fast) {
      s.add({s.x({64, 2048}), s.x({2048, 48})}, plain, true);
      s.add({s.x({257, 300}), ordered(s.x({300, 255}), {1, 0})}, plain, true);
    }
    const auto with = [](double alpha, double beta, format_number format = {}) {
      return op::matmul::constants{.format = format, .alpha = alpha, .beta = beta};
    };
    s.add({s.x({3, 1, 4, 5}), s.x({2, 5, 6})}, plain, true);
    s.add({s.x({6, 17, 20}), s.x({20, fast ? 36 : 33})}, plain, true);
    s.add({ordered(s.x({6, 17, 20}), {1, 0, 2}), s.x({20, 33})}, plain, true);
    s.add({s.x({5, 20, 7}), s.x({5, 7, 9})}, plain, true);
    s.add({s.x({40, 1300}), s.x({1300, 24})}, plain, !fast);  // few tiles, which several workgroups may share along K
    s.add({ordered(s.x({5, 20, 7}), {1, 0, 2}), ordered(s.x({5, 7, 9}), {2, 0, 1})}, plain, true);
    s.add({ordered(s.x({5, 20, 7}), {1, 2, 0}), s.x({5, 7, 9})}, plain, true);  // innermost batches: no axis of a matrix is contiguous
    s.add({ordered(s.x({1024, 2, 3}), {1, 2, 0}), s.x({1024, 3, 4})}, plain, !fast);
    s.add({s.x({1, 8, 16}), s.x({4, 16, 8})}, plain, true);
    for (const auto& [alpha, beta] : {std::pair(0.5, -2.0), std::pair(1.0, 1.0), std::pair(2.0, 0.0), std::pair(0.0, 1.0)})
      if (!fast || alpha == 0.5 || alpha == 0) s.add({s.x({9, 14}), s.x({14, 11}), s.x({9, 11})}, with(alpha, beta), !fast || alpha != 0);
    s.add({s.x({9, 14}), s.x({14, 11}), s.x({9, 11}, nan, nan, &generator_of<generators::constant>)}, with(0.5, 0));  // beta 0 ignores c
    s.add({s.x({40, 31}), s.x({31, 24})}, with(1, 0, s.accum()));
    const auto special = &generator_of<generators::specials>;
    s.add({s.x({24, 1}, 0, 0, special), s.x({1, 24}, 1, 1, &generator_of<generators::constant>)}, plain);
    for (const auto& [M, K, N] : {std::array<std::int64_t, 3>{12, 64, 12}, {33, 512, 17}, {64, 1000, 65}}) {
      const auto hard = &generator_of<generators::cancelling>;
      test_case c{.attr = plain, .in = {s.x({M, K}, 0, 0, hard), s.x({K, N}, 0, 0, hard)}};
      c.ill_conditioned = true;
      s.put(c, !fast);
    }
    for (int k = 0; k < 3 * s.repeats(); ++k) {
      const std::int64_t most = k % 5 == 0 ? 150 : 70;
      const auto length = [&](std::uint32_t axis) { return s.size(k, axis, 1, most) | (fast ? 1 : 0); };  // odd lengths divide alike
      operand_recipe a = s.x({length(0), length(1)}), b = s.x({length(1), length(2)});
      if (s.size(k, 3, 0, 1) != 0) a = ordered(a, {1, 0});
      if (s.size(k, 4, 0, 1) != 0) b = ordered(b, {1, 0});
      s.add({a, b}, plain, k % 2 == 0);
    }
    for (const std::int64_t n : {1, 16, 33, 64}) {
      if (fast && n != 16 && n != 33) continue;
      s.put(
          {.kind = case_kind::law, .law = 0, .attr = plain, .in = {s.x({17, n}), s.x({n, n}, 0, 1, &generator_of<generators::identity>)}});
      s.put({.kind = case_kind::law, .law = 1, .attr = plain, .in = {s.x({9, n}), s.x({n, 40}), s.x({n, 40})}});
      s.put({.kind = case_kind::law, .law = 2, .attr = plain, .in = {s.x({9, n}), s.x({n, 40})}});
      s.put({.kind = case_kind::law, .law = 3, .attr = plain, .in = {s.x({9, n}), s.x({n, 40})}});
    }
    // Products of a few rows, of more rows than fit a tile, and of a device's largest tiles; sums of several parts of K.
    const op::matmul::constants invariant{.batch_invariant = true};
    constexpr std::int64_t rows[][4] = {{2, 24, 16, 1},     {9, 800, 40, 1},    {34, 136, 72, 1},
                                        {130, 1300, 24, 0}, {300, 384, 392, 0}, {2050, 384, 808, 0}};
    for (const auto& [M, K, N, quick] : rows)
      for (const bool across : {false, true}) {
        if (fast && (quick == 0 || across != (M == 9))) continue;
        const operand_recipe b = across ? s.x({K, N}) : ordered(s.x({K, N}), {1, 0});
        s.put({.kind = case_kind::law, .law = 5, .attr = invariant, .in = {s.x({M, K}), b}});
      }
    s.add({s.x({5, 96}), ordered(s.x({96, 40}), {1, 0})}, invariant);
    s.put({.kind = case_kind::refusal, .attr = plain, .in = {s.x({2, 3}), s.x({4, 5})}});
    s.put({.kind = case_kind::refusal, .attr = plain, .in = {s.x({3}), s.x({3, 5})}});
    s.put({.kind = case_kind::refusal, .attr = plain, .in = {s.x({2, 2, 3}), s.x({3, 3, 4})}});
    if (s.blocks())
      for (const dtype type : {dtype::q8_0, dtype::q4_0}) cases_in_blocks(s, type);
  }
  /// Weights in blocks; activations are rounded to 8 bits where they are in f32.
  static void cases_in_blocks(case_sink& s, dtype type) {
    const op::matmul::constants plain, invariant{.batch_invariant = true};
    const auto weight = [&](std::int64_t K, std::int64_t N, const generator* from = &generator_of<generators::uniform>, double low = -2,
                            double high = 2) { return ordered({{K, N}, type, from, low, high, row_major}, {1, 0}); };
    // Few rows, which kernels multiply in place, and many, for which they unpack the weight; panels of 16 columns that are not full, and odd numbers of them;
    // sums that kernels divide into parts that end within a block.
    constexpr std::int64_t sizes[][3] = {{1, 32, 16},  {1, 64, 37},   {2, 800, 37}, {3, 96, 16},  {4, 288, 50},
                                         {5, 1056, 3}, {8, 320, 130}, {9, 800, 37}, {33, 64, 70}, {70, 544, 33}};
    for (const auto& [M, K, N] : sizes) {
      s.add({s.x({M, K}), weight(K, N)}, plain);
      s.put({.kind = case_kind::law, .law = 4, .attr = invariant, .in = {s.x({M, K}), weight(K, N)}});
    }
    s.add({s.x({2, 3, 64}), weight(64, 21)}, plain);
    s.add({ordered(s.x({20, 64}), {1, 0}), weight(64, 21)}, plain);
    for (const std::int64_t M : {3, 20})
      s.add({s.x({M, 64}), weight(64, 21), s.x({M, 21})}, op::matmul::constants{.alpha = 0.5, .beta = -2});
    s.add({s.x({4, 64}), weight(64, 21, &generator_of<generators::constant>, 0, 0)}, plain);  // scales of 0
    s.add({s.x({4, 96}), weight(96, 21, &generator_of<generators::exponents>, -16, 2)}, plain);
    s.add({s.x({64, 64}, 0, 1, &generator_of<generators::identity>), weight(64, 21)}, plain);

    // Activations in 8 bits: numbers of rows that kernels take at once and more, K beyond the blocks that are added before the others.
    const op::matmul::constants a8{.a8 = true};
    if (s.program() != dtype::f32 && s.program() != dtype::bf16)
      return s.put({.kind = case_kind::refusal, .attr = a8, .in = {s.x({4, 64}), weight(64, 21)}});
    for (const auto& [M, K, N] : std::initializer_list<std::array<std::int64_t, 3>>{
             {1, 32, 16}, {2, 64, 37}, {3, 800, 37}, {4, 96, 16}, {5, 2144, 3}, {7, 320, 300}, {33, 64, 70}, {70, 4160, 33}}) {
      s.add({s.x({M, K}), weight(K, N)}, a8);
      s.put({.kind = case_kind::law, .law = 3, .attr = a8, .in = {s.x({M, K}), weight(K, N)}});
      if (M > 1 && M <= 7) s.put({.kind = case_kind::law, .law = 5, .attr = a8, .in = {s.x({M, K}), weight(K, N)}});
    }
    s.add({s.x({2, 3, 64}), weight(64, 21)}, a8);
    s.add({ordered(s.x({20, 64}), {1, 0}), weight(64, 21)}, a8);
    s.add({s.x({6, 64}), weight(64, 21), s.x({6, 21})}, op::matmul::constants{.alpha = 0.5, .beta = -2, .a8 = true});
    s.add({s.x({4, 96}, 0, 0, &generator_of<generators::specials>), weight(96, 21)}, a8);
    s.add({s.x({4, 96}, 0, 0, &generator_of<generators::constant>), weight(96, 21)}, a8);  // scales of 0
    s.add({s.x({4, 96}, -16, 2, &generator_of<generators::exponents>), weight(96, 21)}, a8);
    s.put({.kind = case_kind::refusal, .attr = a8, .in = {s.x({4, 64}), s.x({64, 21})}});
  }
};

}  // namespace isotope::conform
