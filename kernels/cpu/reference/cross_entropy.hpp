#pragma once
/// Mean negative log-likelihood of the targets and its gradient; probabilities are recomputed from the stored maxima and sums.
#include <limits>

#include <isotope/op/cross_entropy.hpp>

#include <isotope/kernels/cpu/reference/body/access.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::reference {
inline bool counts(std::int64_t target, std::int64_t V) { return target >= 0 && target < V; }
}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::reference

namespace isotope::cpu {

template <class P> struct kernel<op::cross_entropy, P, kernels::reference> {
  static void run(const launch& l) {
    const view &logits = l.in[0], &targets = l.in[1], &tops = l.out[1], &sums = l.out[2];
    const std::int64_t V = l.constants<op::cross_entropy>().classes, step = reference::last_stride(logits);
    double loss = 0;
    std::int64_t rows = 0;
    for (reference::index row(targets.dims); row.valid(); row.next()) {
      const auto from = row.in(logits.strides);
      double top = -std::numeric_limits<double>::infinity(), total = 0;
      for (std::int64_t c = 0; c < V; ++c) {
        const double x = reference::load(logits, from + c * step);
        if (x > top) top = x;
      }
      for (std::int64_t c = 0; c < V; ++c) total += std::exp(reference::load(logits, from + c * step) - top);
      reference::store(tops, row.in(tops.strides), std::isnan(total) ? total : top);
      reference::store(sums, row.in(sums.strides), total);
      const std::int64_t target = targets.as<const std::int32_t>()[row.in(targets.strides)];
      if (!reference::counts(target, V)) continue;
      loss += (top - reference::load(logits, from + target * step)) + std::log(total);
      ++rows;
    }
    reference::store(l.out[0], 0, rows == 0 ? 0.0 : loss / double(rows));
  }
};

template <class P> struct kernel<op::cross_entropy_grad, P, kernels::reference> {
  static constexpr std::uint32_t inplace = 1;
  static void run(const launch& l) {
    const view &logits = l.in[0], &targets = l.in[1], &tops = l.in[2], &sums = l.in[3], &dx = l.out[0];
    const std::int64_t V = l.constants<op::cross_entropy>().classes, N = logits.dims[-1];
    const view& all = l.in.size() > 5 ? l.in[5] : targets;
    const auto target = [&](const reference::index& row) -> std::int64_t {
      return targets.as<const std::int32_t>()[row.in(targets.strides)];
    };
    std::int64_t rows = 0;
    for (reference::index row(all.dims); row.valid(); row.next())
      rows += reference::counts(all.as<const std::int32_t>()[row.in(all.strides)], V) ? 1 : 0;
    const double dloss = reference::load(l.in[4], 0);
    for (reference::index row(targets.dims); row.valid(); row.next()) {
      const bool counted = reference::counts(target(row), V);
      const double top = reference::load(tops, row.in(tops.strides)), sum = reference::load(sums, row.in(sums.strides));
      for (std::int64_t c = V; c < N; ++c) reference::store(dx, row.in(dx.strides) + c * reference::last_stride(dx), 0);
      for (std::int64_t c = 0; c < V; ++c) {
        const double x = reference::load(logits, row.in(logits.strides) + c * reference::last_stride(logits));
        const double d = std::exp(x - top) / sum - (c == target(row) ? 1.0 : 0.0);
        reference::store(dx, row.in(dx.strides) + c * reference::last_stride(dx), counted ? dloss * d / double(rows) : 0.0);
      }
    }
  }
};

}  // namespace isotope::cpu
