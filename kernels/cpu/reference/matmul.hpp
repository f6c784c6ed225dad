#pragma once
/// Matrix product by the definition: one dot product per element, bound by flops.
#include <isotope/op/matmul.hpp>

#include <isotope/kernels/cpu/reference/body/body.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::matmul, P, kernels::reference> {
  static constexpr bool epilogue = true;
  static constexpr bool reads_blocks = true;
  static constexpr std::int64_t chain(std::int64_t) { return 1; }  // longest serial sum in roundings of f32: the sum is in f64
  static void run(const launch& l) {
    const view &a = l.in[0], &b = l.in[1], &y = l.out[0];
    const int rank = y.dims.rank;
    const auto M = std::size_t(rank - 2), N = std::size_t(rank - 1);
    const std::int64_t K = a.dims[-1], a_step = reference::last_stride(a), b_step = b.strides[std::size_t(b.dims.rank - 2)];
    extents a_rows = reference::repeated(a, rank), b_cols = reference::repeated(b, rank);  // (..., M, 0), (..., 0, N)
    a_rows[N] = b_cols[M] = 0;
    const auto c = l.constants<op::matmul>();
    const auto type = c.format.type();
    const double alpha = c.alpha, beta = c.beta;
    for (reference::index i(y.dims); i.valid(); i.next()) {
      const auto ia = i.in(a_rows), ib = i.in(b_cols);
      double sum = 0;
      for (std::int64_t k = 0; k < K && !c.a8; ++k) {
        const double w = reference::load(b, ib + k * b_step);
        sum += reference::load(a, ia + k * a_step) * (in_blocks(b.type) ? reference::rounded(op::matmul::element_type(a.type), w) : w);
      }
      for (std::int64_t k = 0; k < K && c.a8; k += quantized::block) {
        const auto x = rounded_at(a, ia + k * a_step, a_step);
        for (std::int64_t j = 0; j < quantized::block; ++j) sum += x[j] * reference::load(b, ib + (k + j) * b_step);
      }
      sum *= alpha;
      if (c.operands == 3 && beta != 0) sum += beta * reference::load(l.in[2], i.in(l.in[2].strides));
      const double product = reference::rounded(type, sum);
      if (l.body.empty()) {
        const auto to = i.in(y.strides);
        reference::store(y, to, product + ((l.accumulate & 1) != 0 ? reference::load(y, to) : 0.0));
      } else {
        const auto hosted = typename P::accum(product);
        reference::run_body<P>(l, i, 1, std::size_t(c.operands), &hosted);
      }
    }
  }

 private:
  ISOTOPE_NOINLINE static quantized::rounded_block rounded_at(const view& a, std::int64_t at, std::int64_t step) {
    double x[quantized::block];
    for (std::int64_t j = 0; j < quantized::block; ++j) x[j] = reference::load(a, at + j * step);
    return quantized::round_activations(x);
  }
};

}  // namespace isotope::cpu
