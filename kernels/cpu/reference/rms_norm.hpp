#pragma once
/// Root-mean-square normalisation, row by row.
#include <isotope/op/rms_norm.hpp>

#include <isotope/kernels/cpu/reference/body/access.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::rms_norm, P, kernels::reference> {
  static constexpr std::uint32_t inplace = 1;
  static void run(const launch& l) {
    using reference::load, reference::last_stride;
    const view &x = l.in[0], &weight = l.in[1], &y = l.out[0], &rstds = l.out[1];
    const std::int64_t C = x.dims[-1], step = last_stride(x);
    for (reference::index row(rstds.dims); row.valid(); row.next()) {
      const auto from = row.in(x.strides), to = row.in(y.strides);
      double squares = 0;
      for (std::int64_t c = 0; c < C; ++c) squares += std::pow(load(x, from + c * step), 2);
      const double rstd = 1 / std::sqrt(squares / double(C) + l.constants<op::rms_norm>().epsilon);
      for (std::int64_t c = 0; c < C; ++c)
        reference::store(y, to + c * last_stride(y), load(x, from + c * step) * rstd * load(weight, c * last_stride(weight)));
      reference::store(rstds, row.in(rstds.strides), rstd);
    }
  }
};

template <class P> struct kernel<op::rms_norm_grad, P, kernels::reference> {
  static constexpr std::uint32_t inplace = 0b1001;  // dweight is complete before dx overwrites x or dy
  static constexpr bool takes_addend = true;
  static void run(const launch& l) {
    using reference::load, reference::last_stride;
    const view &x = l.in[0], &weight = l.in[1], &rstds = l.in[2], &dy = l.in[3], &dx = l.out[0];
    const std::int64_t C = x.dims[-1];
    const auto normal = [&](const reference::index& row, std::int64_t c) {
      return load(x, row.in(x.strides) + c * last_stride(x)) * load(rstds, row.in(rstds.strides));
    };
    const auto given = [&](const reference::index& row, std::int64_t c) { return load(dy, row.in(dy.strides) + c * last_stride(dy)); };
    for (std::int64_t c = 0; c < C; ++c) {
      double dweight = 0;
      for (reference::index row(rstds.dims); row.valid(); row.next()) dweight += given(row, c) * normal(row, c);
      reference::store(l.out[1], c * last_stride(l.out[1]), dweight);
    }
    for (reference::index row(rstds.dims); row.valid(); row.next()) {
      double avg_eh = 0;
      for (std::int64_t c = 0; c < C; ++c) avg_eh += given(row, c) * load(weight, c * last_stride(weight)) * normal(row, c) / double(C);
      const double rstd = load(rstds, row.in(rstds.strides));
      for (std::int64_t c = 0; c < C; ++c) {
        const double e = given(row, c) * load(weight, c * last_stride(weight));
        const auto at = row.in(dx.strides) + c * last_stride(dx);
        reference::store(dx, at, rstd * (e - normal(row, c) * avg_eh));
        if (l.in.size() > 4) reference::store(dx, at, load(l.in[4], row.in(l.in[4].strides) + c * last_stride(l.in[4])) + load(dx, at));
      }
    }
  }
};

}  // namespace isotope::cpu
