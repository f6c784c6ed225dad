#pragma once
/// The gradient of cross-entropy on the columns of one device.
#include <isotope/op/cross_entropy_part.hpp>

#include <isotope/kernels/cpu/reference/cross_entropy.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::cross_entropy_part_grad, P, kernels::reference> {
  static constexpr std::uint32_t inplace = 1;
  static void run(const launch& l) {
    const view &logits = l.in[0], &targets = l.in[1], &tops = l.in[2], &sums = l.in[3], &dx = l.out[0];
    const auto c = l.constants<op::cross_entropy_part_grad>();
    const std::int64_t N = logits.dims[-1];
    const view& all = l.in.size() > 5 ? l.in[5] : targets;
    std::int64_t rows = 0;
    for (reference::index row(all.dims); row.valid(); row.next())
      rows += reference::counts(all.as<const std::int32_t>()[row.in(all.strides)], c.all) ? 1 : 0;
    const double dloss = reference::load(l.in[4], 0);
    for (reference::index row(targets.dims); row.valid(); row.next()) {
      const std::int64_t target = targets.as<const std::int32_t>()[row.in(targets.strides)];
      const bool counted = reference::counts(target, c.all);
      const double top = reference::load(tops, row.in(tops.strides)), sum = reference::load(sums, row.in(sums.strides));
      for (std::int64_t k = c.classes; k < N; ++k) reference::store(dx, row.in(dx.strides) + k * reference::last_stride(dx), 0);
      for (std::int64_t k = 0; k < c.classes; ++k) {
        const double x = reference::load(logits, row.in(logits.strides) + k * reference::last_stride(logits));
        const double d = std::exp(x - top) / sum - (c.first + k == target ? 1.0 : 0.0);
        reference::store(dx, row.in(dx.strides) + k * reference::last_stride(dx), counted ? dloss * d / double(rows) : 0.0);
      }
    }
  }
};

}  // namespace isotope::cpu
