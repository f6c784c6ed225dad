#pragma once
/// Layer normalisation, row by row: the mean, then deviations from it, then the result.
#include <isotope/op/layer_norm.hpp>

#include <isotope/kernels/cpu/reference/body/access.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::layer_norm, P, kernels::reference> {
  static constexpr std::uint32_t inplace = 1;
  static void run(const launch& l) {
    using reference::load, reference::last_stride;
    const view &x = l.in[0], &weight = l.in[1], &bias = l.in[2], &y = l.out[0], &means = l.out[1], &rstds = l.out[2];
    const std::int64_t C = x.dims[-1], step = last_stride(x);
    for (reference::index row(means.dims); row.valid(); row.next()) {
      const auto from = row.in(x.strides), to = row.in(y.strides);
      double mean = 0, variance = 0;
      for (std::int64_t c = 0; c < C; ++c) mean += load(x, from + c * step);
      mean /= double(C);
      for (std::int64_t c = 0; c < C; ++c) variance += std::pow(load(x, from + c * step) - mean, 2);
      const double rstd = 1 / std::sqrt(variance / double(C) + l.constants<op::layer_norm>().epsilon);
      for (std::int64_t c = 0; c < C; ++c) {
        const double h = (load(x, from + c * step) - mean) * rstd;
        reference::store(y, to + c * last_stride(y), h * load(weight, c * last_stride(weight)) + load(bias, c * last_stride(bias)));
      }
      reference::store(means, row.in(means.strides), mean);
      reference::store(rstds, row.in(rstds.strides), rstd);
    }
  }
};

template <class P> struct kernel<op::layer_norm_grad, P, kernels::reference> {
  static constexpr std::uint32_t inplace = 0b100001;  // dweight and dbias are complete before dx overwrites x or dy
  static constexpr bool takes_addend = true;
  static void run(const launch& l) {
    using reference::load, reference::last_stride;
    const view &x = l.in[0], &weight = l.in[1], &means = l.in[3], &rstds = l.in[4], &dy = l.in[5], &dx = l.out[0];
    const std::int64_t C = x.dims[-1];
    const auto normal = [&](const reference::index& row, std::int64_t c) {
      const double mean = load(means, row.in(means.strides)), rstd = load(rstds, row.in(rstds.strides));
      return (load(x, row.in(x.strides) + c * last_stride(x)) - mean) * rstd;
    };
    const auto given = [&](const reference::index& row, std::int64_t c) { return load(dy, row.in(dy.strides) + c * last_stride(dy)); };
    for (std::int64_t c = 0; c < C; ++c) {
      double dweight = 0, dbias = 0;
      for (reference::index row(means.dims); row.valid(); row.next()) {
        dweight += given(row, c) * normal(row, c);
        dbias += given(row, c);
      }
      reference::store(l.out[1], c * last_stride(l.out[1]), dweight);
      reference::store(l.out[2], c * last_stride(l.out[2]), dbias);
    }
    for (reference::index row(means.dims); row.valid(); row.next()) {
      double avg_e = 0, avg_eh = 0;
      for (std::int64_t c = 0; c < C; ++c) {
        const double e = given(row, c) * load(weight, c * last_stride(weight));
        avg_e += e / double(C);
        avg_eh += e * normal(row, c) / double(C);
      }
      const double rstd = load(rstds, row.in(rstds.strides));
      for (std::int64_t c = 0; c < C; ++c) {
        const double e = given(row, c) * load(weight, c * last_stride(weight));
        const auto at = row.in(dx.strides) + c * last_stride(dx);
        reference::store(dx, at, rstd * (e - avg_e - normal(row, c) * avg_eh));
        if (l.in.size() > 6) reference::store(dx, at, load(l.in[6], row.in(l.in[6].strides) + c * last_stride(l.in[6])) + load(dx, at));
      }
    }
  }
};

}  // namespace isotope::cpu
