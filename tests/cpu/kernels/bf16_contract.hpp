#pragma once
/// The error bound of bf16 matmuls against sums in f64: one unit in the last place of a bf16 result, plus 16 u sum |a b| with u = 2^-24, plus 2^-149 for
/// each of the K terms, for results below 2^-126. Instructions for pairs of bf16 flush subnormals to zero, but the results of kernels must not show it.
#include <sstream>
#include <string>

#include "compare.hpp"

namespace isotope_test {

struct operands {
  std::int64_t M, N, K;
  int order = 0;         // bit 0: A is stored (K,M), bit 1: B is stored (N,K)
  std::int64_t gap = 0;  // elements between rows in memory
};

/// A matrix (rows, cols) with a row stride of cols + gap.
struct matrix {
  array memory;
  cpu::view v;
  template <class F>
  matrix(std::int64_t rows, std::int64_t cols, std::int64_t gap, bool turned, const F& element)
      : memory({turned ? cols : rows, (turned ? rows : cols) + gap}, dtype::bf16, 77), v(memory.v) {
    const std::int64_t ld = v.dims[-1];
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < cols; ++j) memory.set(turned ? j * ld + i : i * ld + j, element(i, j));
    v.dims = {rows, cols};
    v.strides = turned ? extents{1, ld} : extents{ld, 1};
  }
  double at(std::int64_t i, std::int64_t j) const { return memory.at(i * v.strides[0] + j * v.strides[1]); }
};

/// Runs the matmul with an epilogue that adds a number to each column, and returns the first difference from the rounded result without epilogue plus that
/// number; empty: none.
template <class Kernel> std::string broken_body(const op_case& plain, const array& product, const operands& o) {
  using set = std::conditional_t<cpu::native::available, kernels::native, kernels::portable>;
  const array bias = array::random({o.N}, dtype::bf16, 5);
  op_case c({plain.in[0], plain.in[1], bias.v}, {}, plain.attr);
  c.out.emplace_back(shape{o.M, o.N}, dtype::bf16);
  c.body = {instruct<kernel_of<op::add, precision::bf16, set>>(dtype::bf16, {isotope::gemm_result, 2}, 0)};
  for (const int threads : {1, 3}) {
    const auto results = c.run<Kernel>(&pool_of(threads));
    const array& given = results[0];
    for (std::int64_t i = 0; i < given.count(); ++i) {
      const double w = double(float(bfloat16(float(product.at(i) + bias.at(i % o.N)))));
      if (std::isnan(w) ? std::isnan(given.at(i)) : w == given.at(i)) continue;
      std::ostringstream broken;
      broken << "with a body C[" << i / o.N << ", " << i % o.N << "] is " << given.at(i) << ", not " << w;
      return broken.str();
    }
  }
  return {};
}

/// The first violation of the error bound, or of equal bits on 1, 2, 3 and 5 threads; empty: none.
template <class Kernel, class F> std::string broken_contract(const operands& o, const F& element) {
  std::ostringstream broken;
  broken << "M " << o.M << " N " << o.N << " K " << o.K << " order " << o.order << " gap " << o.gap << ": ";
  const matrix a(o.M, o.K, o.gap, (o.order & 1) != 0, [&](std::int64_t i, std::int64_t k) { return element(0, i, k); });
  const matrix b(o.K, o.N, o.gap, (o.order & 2) != 0, [&](std::int64_t k, std::int64_t j) { return element(1, j, k); });
  std::vector<double> wide_a(std::size_t(o.M * o.K)), wide_b(std::size_t(o.N * o.K));  // rows of A, columns of B
  for (std::int64_t k = 0; k < o.K; ++k) {
    for (std::int64_t i = 0; i < o.M; ++i) wide_a[std::size_t(i * o.K + k)] = a.at(i, k);
    for (std::int64_t j = 0; j < o.N; ++j) wide_b[std::size_t(j * o.K + k)] = b.at(k, j);
  }
  for (const dtype result : {dtype::bf16, dtype::f32}) {
    const attributes t = op::matmul::constants{.format = result, .operands = 2};
    std::vector<array> out;
    out.emplace_back(shape{o.M, o.N}, result);
    const op_case c({a.v, b.v}, std::move(out), t);
    const auto given = c.run<Kernel>(&pool_of(1));
    for (std::int64_t i = 0; i < o.M; ++i)
      for (std::int64_t j = 0; j < o.N; ++j) {
        double w = 0, sum = 0;
        for (std::int64_t k = 0; k < o.K; ++k) {
          const double x = wide_a[std::size_t(i * o.K + k)] * wide_b[std::size_t(j * o.K + k)];
          w += x;
          sum += std::fabs(x);
        }
        const double g = given[0].at(i * o.N + j);
        if (std::isnan(w) ? std::isnan(g) : w == g) continue;
        const double place = result == dtype::bf16 ? std::fmax(std::ldexp(1.0, std::ilogb(w) - 7), 0x1p-133) : 0;
        if (std::fabs(g - w) <= place + 0x1p-20 * sum + 0x1p-149 * double(o.K)) continue;
        broken << "C[" << i << ", " << j << "] is " << g << ", in f64 " << w;
        return broken.str();
      }
    if (result == dtype::bf16)
      if (const auto place = broken_body<Kernel>(c, given[0], o); !place.empty()) {
        broken << place;
        return broken.str();
      }
    for (const int threads : {2, 3, 5})
      if (given[0].bytes != c.run<Kernel>(&pool_of(threads))[0].bytes) {
        broken << "other bits with " << threads << " threads";
        return broken.str();
      }
  }
  return {};
}
template <class Kernel, class F> std::string broken_in_any_order(std::int64_t M, std::int64_t N, std::int64_t K, const F& element) {
  for (int order = 0; order < 4; ++order)
    for (const int gap : {0, 3})
      if (auto broken = broken_contract<Kernel>({M, N, K, order, gap}, element); !broken.empty()) return broken;
  return {};
}
/// A random number in [-1, 1) for each element.
inline double random_number(int operand, std::int64_t i, std::int64_t k) {
  return 2 * double(philox(3, std::uint64_t(i * 65536 + k), std::uint32_t(operand), 7)[0]) * 0x1p-32 - 1;
}

}  // namespace isotope_test
