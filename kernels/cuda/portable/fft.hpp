#pragma once
/// Fourier transforms: fft.cu. Real rows of an even length N are computed as complex ones of N / 2.
#include <isotope/kernels/cuda/fourier/passes.hpp>
#include <isotope/kernels/cuda/reference/fft.hpp>
#include <isotope/op/fft.hpp>

#include <isotope/kernels/cuda/rows/rows.hpp>

namespace isotope::cuda {
namespace portable {

/// The complex transform behind each op, from the shapes of its operand and its result.
constexpr fourier_task task_of(op::fft, const shape& x, const shape&, const op::fft::constants& c) {
  fourier_task t;
  t.points = t.in_row = t.out_row = t.kept = x[-2];
  t.rows = x.count() / (2 * t.points);
  t.inverse = c.direction > 0;
  t.y_inner = c.factor;
  return t;
}
constexpr fourier_task task_of(op::rfft, const shape& x, const shape& y, const op::rfft::constants& c) {
  const std::int64_t N = x[-1], bins = y[-2];
  const bool even = N % 2 == 0;
  fourier_task t;
  t.points = t.in_row = even ? N / 2 : N;
  t.rows = x.count() / N;
  t.out_row = bins;
  t.kept = even ? N / 2 : bins;
  t.from = even ? gpu::from_pairs : gpu::from_numbers;
  t.to = even ? gpu::to_half_bins : gpu::to_bins;
  t.y_inner = c.factor * c.inner * (even ? 0.5 : 1);
  t.y_outer = c.factor;
  return t;
}
constexpr fourier_task task_of(op::irfft, const shape& x, const shape& y, const op::irfft::constants& c) {
  const std::int64_t N = y[-1];
  const bool even = N % 2 == 0;
  fourier_task t;
  t.inverse = true;
  t.points = t.out_row = t.kept = even ? N / 2 : N;
  t.rows = y.count() / N;
  t.in_row = x[-2];
  t.from = even ? gpu::from_half_bins : gpu::from_bins;
  t.to = even ? gpu::to_pairs : gpu::to_numbers;
  t.x_inner = 0.5 * c.factor * c.inner;
  t.x_outer = c.factor;
  return t;
}
template <class Op, class P> struct transform {
  static constexpr std::int64_t scratch(const step_shapes& s) {
    return std::max(task_of(Op{}, s.in[0], s.out[0], s.constants<Op>()).size().scratch(), scratch_below<Op, P>(s));
  }
  static void record(const launch& l, recording& r) {
    const fourier_task t = task_of(Op{}, l.in[0].dims, l.out[0].dims, l.constants<Op>());
    if (t.points > fourier_size::most_points || !all_load_as_f32(l.in[0], l.out[0]))
      return fall_through<Op, P>(l, r, "fft: rows too long, or a format that is not read as f32");
    fourier::record(t, l, r);
  }
};

}  // namespace portable

template <GpuPrecision P> struct kernel<op::fft, P, kernels::portable> : portable::transform<op::fft, P> {};
template <GpuPrecision P> struct kernel<op::rfft, P, kernels::portable> : portable::transform<op::rfft, P> {};
template <GpuPrecision P> struct kernel<op::irfft, P, kernels::portable> : portable::transform<op::irfft, P> {};

}  // namespace isotope::cuda
