#pragma once
/// Fourier transforms by their definition.
#include <cmath>
#include <vector>

#include <isotope/op/fft.hpp>
#include <isotope/shaders/reference_fft.hpp>

#include "items.hpp"

namespace isotope::vulkan {
namespace reference {

enum class fourier_form : std::uint32_t { complex, from_real, to_real };

/// Returns (N, 2): cosines and sines of -2 pi t / N, computed from angles within a quarter turn.
inline std::vector<float> roots_of_unity(std::int64_t N) {
  std::vector<float> table;
  for (std::int64_t t = 0; t < N; ++t) {
    const std::int64_t quarter = 4 * t / N;
    const double angle = 1.5707963267948966 * double(4 * t - quarter * N) / double(N), c = std::cos(angle), s = std::sin(angle);
    const double turned[4][2] = {{c, -s}, {-s, -c}, {-c, s}, {s, c}};
    for (const double v : turned[quarter]) table.push_back(float(v));
  }
  return table;
}
/// Rows of N points in one domain, by the attributes of a transform in that form.
inline void fft(const launch& l, recording& r, fourier_form form, std::int64_t N) {
  const view &x = l.in[0], &y = l.out[0];
  if (y.dims.count() == 0) return;
  const bool real = form != fourier_form::complex;
  const std::int64_t in_row = form == fourier_form::to_real ? N / 2 + 1 : N, out_row = form == fourier_form::from_real ? N / 2 + 1 : N;
  const std::int64_t rows = form == fourier_form::from_real ? x.dims.count() / N : x.dims.count() / (2 * in_row);
  const std::vector<float> roots = roots_of_unity(N);
  const std::uint64_t table = r.keep(std::span<const float>(roots));
  const double factor = real ? l.constants<op::rfft>().factor : l.constants<op::fft>().factor;
  const double inner = real ? factor * l.constants<op::rfft>().inner : factor;
  const auto direction = form == fourier_form::complex ? l.constants<op::fft>().direction : form == fourier_form::from_real ? -1 : 1;
  const struct {
    std::uint64_t x, y, roots;
    float inner, outer, direction;
    std::uint32_t rows, in_row, out_row, N;
  } push{x.at, y.at, table, float(inner), float(factor), float(direction), word(rows), word(in_row), word(out_row), word(N)};
  r.add(shaders::reference_fft, plain(l).add(x.type).add(y.type).add(std::uint32_t(form)), push, per_item(rows * out_row),
        {x, range(table, 8 * N)}, {y});
}

}  // namespace reference

template <class P> struct kernel<op::fft, P, kernels::reference> {
  static void record(const launch& l, recording& r) { reference::fft(l, r, reference::fourier_form::complex, l.in[0].dims[-2]); }
};
template <class P> struct kernel<op::rfft, P, kernels::reference> {
  static void record(const launch& l, recording& r) { reference::fft(l, r, reference::fourier_form::from_real, l.in[0].dims[-1]); }
};
template <class P> struct kernel<op::irfft, P, kernels::reference> {
  static void record(const launch& l, recording& r) { reference::fft(l, r, reference::fourier_form::to_real, l.out[0].dims[-1]); }
};

}  // namespace isotope::vulkan
