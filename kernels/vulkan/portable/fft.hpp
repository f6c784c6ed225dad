#pragma once
/// Fourier transforms on any device: fft.comp. Real rows of an even length N are computed as complex ones of N / 2.
#include <isotope/kernels/vulkan/math/fourier.hpp>
#include <isotope/kernels/vulkan/reference/fft.hpp>
#include <isotope/op/fft.hpp>

#include <isotope/kernels/vulkan/rows/rows.hpp>

namespace isotope::vulkan {
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
  t.from = even ? fourier_source::pairs : fourier_source::numbers;
  t.to = even ? fourier_target::half_bins : fourier_target::bins;
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
  t.from = even ? fourier_source::half_bins : fourier_source::bins;
  t.to = even ? fourier_target::pairs : fourier_target::numbers;
  t.x_inner = 0.5 * c.factor * c.inner;
  t.x_outer = c.factor;
  return t;
}
template <class Op, class P> struct transform {
  static constexpr std::int64_t scratch(const step_shapes& s) {
    return task_of(Op{}, s.in[0], s.out[0], s.constants<Op>()).size().scratch();
  }
  static void record(const launch& l, recording& r) {
    if (l.device->shared_bytes < fourier_size::shared_bytes)
      return fall_through<Op, P>(l, r, "fft: needs 32 KiB of shared memory in a workgroup");
    fourier::record(task_of(Op{}, l.in[0].dims, l.out[0].dims, l.constants<Op>()), l, r);
  }
};

}  // namespace portable

template <class P> struct kernel<op::fft, P, kernels::portable> : portable::transform<op::fft, P> {};
template <class P> struct kernel<op::rfft, P, kernels::portable> : portable::transform<op::rfft, P> {};
template <class P> struct kernel<op::irfft, P, kernels::portable> : portable::transform<op::irfft, P> {};

}  // namespace isotope::vulkan
