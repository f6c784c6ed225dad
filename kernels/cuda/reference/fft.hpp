#pragma once
/// Fourier transforms by their definition.
#include <cmath>

#include <isotope/backend/cuda/launch.hpp>
#include <isotope/fatbins/reference_fft.hpp>
#include <isotope/op/fft.hpp>

#include "fft.h"

namespace isotope::cuda {
namespace reference {

/// Returns (N, 2): cosines and sines of -2 pi t / N, computed from angles within a quarter turn.
inline std::vector<double> roots_of_unity(std::int64_t N) {
  std::vector<double> table;
  for (std::int64_t t = 0; t < N; ++t) {
    const std::int64_t quarter = 4 * t / N;
    const double angle = 1.5707963267948966 * double(4 * t - quarter * N) / double(N), c = std::cos(angle), s = std::sin(angle);
    const double turned[4][2] = {{c, -s}, {-s, -c}, {-c, s}, {s, c}};
    for (const double v : turned[quarter]) table.push_back(v);
  }
  return table;
}
/// Rows of N points in one domain, by the attributes of a transform in that form.
inline void fft(const launch& l, recording& r, int form, std::int64_t N) {
  const view &x = l.in[0], &y = l.out[0];
  if (y.dims.count() == 0) return;
  const bool complex = form == gpu::fourier_complex;
  const std::vector<double> roots = roots_of_unity(N);
  gpu::reference_fft_arguments g{};
  g.x = x.at;
  g.y = y.at;
  g.roots = r.keep(std::span<const double>(roots));
  g.in_row = form == gpu::fourier_to_real ? N / 2 + 1 : N;
  g.out_row = form == gpu::fourier_from_real ? N / 2 + 1 : N;
  g.rows = form == gpu::fourier_from_real ? x.dims.count() / N : x.dims.count() / (2 * g.in_row);
  g.N = N;
  g.outer = complex ? l.constants<op::fft>().factor : l.constants<op::rfft>().factor;
  g.inner = complex ? g.outer : g.outer * l.constants<op::rfft>().inner;
  g.direction = complex ? double(l.constants<op::fft>().direction) : form == gpu::fourier_from_real ? -1 : 1;
  g.form = form;
  g.x_type = std::int32_t(x.type);
  g.y_type = std::int32_t(y.type);
  r.add(fatbins::reference_fft, "reference_fft", g, per_item(g.rows * g.out_row), {x, range(g.roots, 16 * N)}, {y});
}

}  // namespace reference

template <class P> struct kernel<op::fft, P, kernels::reference> {
  static void record(const launch& l, recording& r) { reference::fft(l, r, gpu::fourier_complex, l.in[0].dims[-2]); }
};
template <class P> struct kernel<op::rfft, P, kernels::reference> {
  static void record(const launch& l, recording& r) { reference::fft(l, r, gpu::fourier_from_real, l.in[0].dims[-1]); }
};
template <class P> struct kernel<op::irfft, P, kernels::reference> {
  static void record(const launch& l, recording& r) { reference::fft(l, r, gpu::fourier_to_real, l.out[0].dims[-1]); }
};

}  // namespace isotope::cuda
