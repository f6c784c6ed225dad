#pragma once
/// Bound by exp, and by bytes once the logits leave the caches: a row is read twice forward, once backward. Rows are shared out in chunks; the
/// rows' losses are kept and summed in row order.
#include <cmath>

#include <isotope/kernels/cpu/math/exp.hpp>
#include <isotope/kernels/cpu/math/sum.hpp>
#include <isotope/kernels/cpu/programs.hpp>
#include <isotope/kernels/cpu/rows.hpp>
#include <isotope/op/cross_entropy.hpp>

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
namespace portable {

/// sum_i e^(x[i] - m), in blocks of 512.
inline float sum_exp(const float* x, std::int64_t n, float m) {
  constexpr std::int64_t block = 512;
  alignas(64) float e[block];
  float total = 0;
  for (std::int64_t i = 0; i < n; i += block) {
    const std::int64_t some = smaller(block, n - i);
    math::map(some, e, [m](float v) ISOTOPE_INLINE_LAMBDA { return math::exp(v - m); }, x + i);
    total += math::sum(e, some);
  }
  return total;
}
inline bool counts(std::int32_t target, std::int64_t V) { return target >= 0 && target < V; }
/// How many rows count.
inline std::int64_t count_of(const std::int32_t* targets, std::int64_t rows, std::int64_t V) {
  std::int64_t counted = 0;
  for (std::int64_t r = 0; r < rows; ++r) counted += counts(targets[r], V) ? 1 : 0;
  return counted;
}
/// The mean of the losses of rows that count, in row order; 0 where none does.
inline float mean_of_counted(const float* losses, const std::int32_t* targets, std::int64_t rows, std::int64_t V) {
  double total = 0;
  for (std::int64_t r = 0; r < rows; ++r)
    if (counts(targets[r], V)) total += double(losses[r]);
  const auto counted = double(count_of(targets, rows, V));
  return counted == 0 ? 0.0f : float(total / counted);
}

/// Of row r: its largest logit and the sum of e^(logit - top), both NaN where the sum is.
ISOTOPE_INLINE void put_statistics(const launch& l, std::int64_t r, float top, float sum) {
  l.out[1].as<float>()[r] = std::isnan(sum) ? sum : top;
  l.out[2].as<float>()[r] = sum;
}

struct cross_entropy {
  static constexpr std::int64_t scratch(const step_shapes& s) {
    const std::int64_t rows = s.in[1].count();
    return 4 * (rows + s.in[0].cols() * row_chunks::limit(rows));
  }
  static void run(const launch& l) {
    const std::int64_t N = l.in[0].dims.cols(), V = l.attr->i[0], rows = l.in[1].dims.count();
    const auto* targets = l.in[1].as<const std::int32_t>();
    auto* losses = static_cast<float*>(l.scratch);
    float* buffers = losses + rows;
    const row_chunks chunks(rows);
    for_tasks(l, chunks.count, double(rows * V) * 0.4, [&](std::int64_t t, int slice) {
      for (std::int64_t r = chunks.begin(t); r < chunks.end(t); ++r) {
        const float* x = read_row(l.in[0], r, N, buffers + slice * N);
        const float top = math::max(x, V), sum = sum_exp(x, V, top);
        put_statistics(l, r, top, sum);
        losses[r] = counts(targets[r], V) ? (top - x[targets[r]]) + std::log(sum) : 0.0f;
      }
    });
    *l.out[0].as<float>() = mean_of_counted(losses, targets, rows, V);
  }
};

struct cross_entropy_grad {
  static constexpr std::uint32_t inplace = 1;

  static constexpr std::int64_t scratch(const step_shapes& s) { return 8 * s.in[0].cols() * row_chunks::limit(s.in[1].count()); }
  static void run(const launch& l) {
    const std::int64_t N = l.in[0].dims.cols(), V = l.attr->i[0], rows = l.in[1].dims.count();
    const auto* targets = l.in[1].as<const std::int32_t>();
    auto* buffers = static_cast<float*>(l.scratch);
    const float k = scalar(l.in[4]) / float(larger_of(1, count_of(targets, rows, V)));
    const row_chunks chunks(rows);
    for_tasks(l, chunks.count, double(rows * V) * 0.35, [&](std::int64_t t, int slice) {
      float* own = buffers + 2 * slice * N;
      for (std::int64_t r = chunks.begin(t); r < chunks.end(t); ++r) {
        const bool in = counts(targets[r], V);
        float* d = target_row(l.out[0], r, N, own + N);
        if (in) {
          const float* x = read_row(l.in[0], r, N, own);
          const float top = l.in[2].as<const float>()[r], sum = l.in[3].as<const float>()[r], factor = k / sum;
          const float hit = k * (math::exp(x[targets[r]] - top) / sum - 1.0f);
          math::map(V, d, [top, factor](float v) ISOTOPE_INLINE_LAMBDA { return factor * math::exp(v - top); }, x);
          d[targets[r]] = hit;
          std::memset(d + V, 0, std::size_t(N - V) * 4);
        } else {
          std::memset(d, 0, std::size_t(N) * 4);
        }
        finish_row(l.out[0], r, N, d);
      }
    });
  }
};

}  // namespace portable
}  // namespace arch

template <VectorProgram P> struct kernel<op::cross_entropy, P, kernels::portable> : portable::cross_entropy {};
template <VectorProgram P> struct kernel<op::cross_entropy_grad, P, kernels::portable> : portable::cross_entropy_grad {};

}  // namespace isotope::cpu
