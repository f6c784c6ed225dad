#pragma once
/// Bound by exp, and by bytes once the logits exceed the caches: a row is read twice forward and once backward, 512 logits at a time, so that 16-bit
/// ones are widened on the stack. Tasks are chunks of rows; the rows' losses are kept and summed in row order.
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>

#include <isotope/kernels/cpu/body/programs.hpp>
#include <isotope/kernels/cpu/math/exp.hpp>
#include <isotope/kernels/cpu/math/sum.hpp>
#include <isotope/kernels/cpu/rows/rows.hpp>
#include <isotope/op/cross_entropy.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

inline constexpr std::int64_t logits_block = 512;
/// Calls part(first column, elements in f32, count) for each block of the row of dense logits that begins at element `row`.
template <class Part> ISOTOPE_INLINE void for_logits(const view& x, std::int64_t row, std::int64_t cols, const Part& part) {
  alignas(64) float wide[logits_block];
  for (std::int64_t i = 0; i < cols; i += logits_block) {
    const std::int64_t some = smaller(logits_block, cols - i);
    if (x.type != dtype::f32) widen_run(x.data, x.type, row + i, 1, wide, some);
    part(i, x.type == dtype::f32 ? x.as<const float>() + row + i : wide, some);
  }
}
/// Returns the largest logit of a row, or NaN if one is NaN.
inline float top_of(const view& x, std::int64_t row, std::int64_t cols) {
  float maxima[2] = {-std::numeric_limits<float>::infinity(), 0};
  for_logits(x, row, cols, [&](std::int64_t, const float* v, std::int64_t n) {
    maxima[1] = math::max(v, n);
    maxima[0] = math::max(maxima, 2);
  });
  return maxima[0];
}
/// sum_i e^(x[i] - m), block by block.
inline float sum_exp(const view& x, std::int64_t row, std::int64_t cols, float m) {
  alignas(64) float e[logits_block];
  float total = 0;
  for_logits(x, row, cols, [&]([[maybe_unused]] std::int64_t i, const float* logits, std::int64_t n) {
    math::map(n, e, [m](float v) ISOTOPE_INLINE_LAMBDA { return math::exp(v - m); }, logits);
    total += math::sum(e, n);
  });
  return total;
}
/// Zeros for n elements from `at`.
inline void clear(const view& y, std::int64_t at, std::int64_t n) {
  const auto each = std::size_t(size_of(y.type));
  std::memset(static_cast<std::byte*>(y.data) + std::size_t(at) * each, 0, std::size_t(n) * each);
}
inline bool counts(std::int32_t target, std::int64_t V) { return target >= 0 && target < V; }
/// Returns how many rows count.
inline std::int64_t count_of(const std::int32_t* targets, std::int64_t rows, std::int64_t V) {
  std::int64_t counted = 0;
  for (std::int64_t r = 0; r < rows; ++r) counted += counts(targets[r], V) ? 1 : 0;
  return counted;
}
/// Returns the factor of a gradient: dloss / rows that count, of the rows of all targets if they are given.
inline float share_of_row(const launch& l, std::int64_t V) {
  const view& all = l.in[l.in.size() > 5 ? 5 : 1];
  const std::int64_t counted = count_of(all.as<const std::int32_t>(), all.dims.count(), V);
  return scalar(l.in[4]) / float(larger_of(1, counted));
}
/// Returns the mean loss of the rows that count, in row order; 0 if none does.
inline float mean_of_counted(const float* losses, const std::int32_t* targets, std::int64_t rows, std::int64_t V) {
  double total = 0;
  for (std::int64_t r = 0; r < rows; ++r)
    if (counts(targets[r], V)) total += double(losses[r]);
  const auto counted = double(count_of(targets, rows, V));
  return counted == 0 ? 0.0f : float(total / counted);
}

/// Stores the largest logit of row r and its sum of e^(logit - top); both are NaN where the sum is.
ISOTOPE_INLINE void put_statistics(const launch& l, std::int64_t r, float top, float sum) {
  l.out[1].as<float>()[r] = std::isnan(sum) ? sum : top;
  l.out[2].as<float>()[r] = sum;
}

struct cross_entropy {
  static constexpr std::int64_t scratch(const step_shapes& s) { return 4 * s.in[1].count(); }
  static void run(const launch& l) {
    const std::int64_t N = l.in[0].dims.cols(), V = l.constants<op::cross_entropy>().classes, rows = l.in[1].dims.count();
    const auto* targets = l.in[1].as<const std::int32_t>();
    auto* losses = static_cast<float*>(l.scratch);
    for_rows(l, rows, double(rows * V) * 0.4, [&](std::int64_t r, int) {
      const float top = top_of(l.in[0], r * N, V), sum = sum_exp(l.in[0], r * N, V, top);
      put_statistics(l, r, top, sum);
      losses[r] = counts(targets[r], V) ? (top - element(l.in[0], r * N + targets[r])) + std::log(sum) : 0.0f;
    });
    *l.out[0].as<float>() = mean_of_counted(losses, targets, rows, V);
  }
};

struct cross_entropy_grad {
  static constexpr std::uint32_t inplace = 1;

  static void run(const launch& l) {
    const std::int64_t N = l.in[0].dims.cols(), V = l.constants<op::cross_entropy>().classes, rows = l.in[1].dims.count();
    const auto* targets = l.in[1].as<const std::int32_t>();
    const view& y = l.out[0];
    const float k = share_of_row(l, V);
    for_rows(l, rows, double(rows * V) * 0.35, [&](std::int64_t r, int) {
      const bool in = counts(targets[r], V);
      if (in) {
        const float top = l.in[2].as<const float>()[r], sum = l.in[3].as<const float>()[r], factor = k / sum;
        const float hit = k * (math::exp(element(l.in[0], r * N + targets[r]) - top) / sum - 1.0f);
        for_logits(l.in[0], r * N, V, [&](std::int64_t i, const float* x, std::int64_t n) {
          alignas(64) float narrow[logits_block];
          float* d = y.type == dtype::f32 ? y.as<float>() + r * N + i : narrow;
          math::map(n, d, [top, factor](float v) ISOTOPE_INLINE_LAMBDA { return factor * math::exp(v - top); }, x);
          if (y.type != dtype::f32) narrow_run(d, y.data, y.type, r * N + i, n);
        });
        narrow_run(&hit, y.data, y.type, r * N + targets[r], 1);
        clear(y, r * N + V, N - V);
      } else {
        clear(y, r * N, N);
      }
    });
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable

namespace isotope::cpu {
template <VectorProgram P> struct kernel<op::cross_entropy, P, kernels::portable> : portable::cross_entropy {};
template <VectorProgram P> struct kernel<op::cross_entropy_grad, P, kernels::portable> : portable::cross_entropy_grad {};
}  // namespace isotope::cpu
