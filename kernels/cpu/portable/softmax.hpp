#pragma once
/// Bound by exp and by bytes. Along the last axis a row stays in cache between passes; along another axis it is gathered first.
#include <cmath>

#include <isotope/kernels/cpu/body/programs.hpp>
#include <isotope/kernels/cpu/math/sum.hpp>
#include <isotope/kernels/cpu/math/weight.hpp>
#include <isotope/kernels/cpu/rows/rows.hpp>
#include <isotope/op/softmax.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

/// The rows along an axis of a dense tensor of outer x length x inner: each has `length` elements, `inner` apart.
struct axis_rows {
  std::int64_t outer = 1, length = 1, inner = 1;
  axis_rows(const shape& s, int axis) {
    for (int i = 0; i < s.rank; ++i) (i < axis ? outer : i == axis ? length : inner) *= s[i];
  }
  static constexpr std::int64_t slice(const step_shapes& s) {
    return s.in[0].rank == 0 ? 1 : s.in[0][int(s.constants<op::softmax_shape>().axis)];
  }
};

/// Gathers each row in f32, calls row(x..., y, n), and stores y.
template <int Operands> struct by_rows {
  static constexpr std::int64_t scratch(const step_shapes& s) {
    const std::int64_t n = axis_rows::slice(s);
    return 4 * (Operands + 1) * n * row_chunks::limit(n == 0 ? 0 : s.in[0].count() / n);
  }
  template <class F> static void run(const launch& l, double nsec, const F& row) {
    const axis_rows a(l.in[0].dims, int(l.constants<op::softmax_shape>().axis));
    const std::int64_t n = a.length, rows = a.outer * a.inner;
    if (n == 0 || rows == 0) return;
    for_rows(l, rows, double(rows * n) * nsec, [&](std::int64_t r, int slice) {
      float* own = static_cast<float*>(l.scratch) + slice * (Operands + 1) * n;
      const std::int64_t at = r / a.inner * n * a.inner + r % a.inner;
      const float* x[Operands];
      for (int k = 0; k < Operands; ++k) {
        const view& v = l.in[std::size_t(k)];
        float* buffer = own + k * n;
        const bool lies = a.inner == 1 && v.type == dtype::f32;
        if (!lies) widen_run(v.data, v.type, at, a.inner, buffer, n);
        x[k] = lies ? v.as<const float>() + at : buffer;
      }
      const view& out = l.out[0];
      float* y = a.inner == 1 && out.type == dtype::f32 ? out.as<float>() + at : own + Operands * n;
      row(x, y, n);
      if (y != own + Operands * n) return;
      if (a.inner == 1) narrow_run(y, out.data, out.type, at, n);
      else
        for (std::int64_t i = 0; i < n; ++i) narrow_run(y + i, out.data, out.type, at + i * a.inner, 1);
    });
  }
};

struct softmax {
  static constexpr std::uint32_t inplace = 1;
  static constexpr std::int64_t scratch(const step_shapes& s) { return by_rows<1>::scratch(s); }
  static void run(const launch& l) {
    by_rows<1>::run(l, 0.8, [](const float* const* x, float* y, std::int64_t n) {
      const float top = math::max(x[0], n);
      math::map(n, y, [top](float v) ISOTOPE_INLINE_LAMBDA { return weight(v - top); }, x[0]);
      const float sum = math::sum(y, n);
      for (std::int64_t i = 0; i < n; ++i) y[i] /= sum;
    });
  }
};
struct softmax_grad {
  static constexpr std::uint32_t inplace = 3;
  static constexpr std::int64_t scratch(const step_shapes& s) { return by_rows<2>::scratch(s); }
  static void run(const launch& l) {
    by_rows<2>::run(l, 0.4, [](const float* const* x, float* dx, std::int64_t n) {
      const float dot = math::dot(x[0], x[1], n);
      math::map(n, dx, [dot](float y, float dy) ISOTOPE_INLINE_LAMBDA { return y * (dy - dot); }, x[0], x[1]);
    });
  }
};
struct log_softmax {
  static constexpr std::uint32_t inplace = 1;
  static constexpr std::int64_t scratch(const step_shapes& s) { return by_rows<1>::scratch(s); }
  static void run(const launch& l) {
    by_rows<1>::run(l, 0.8, [](const float* const* x, float* y, std::int64_t n) {
      constexpr std::int64_t piece = 512;
      alignas(64) float e[piece];
      const float top = math::max(x[0], n);
      float sum = 0;
      for (std::int64_t i = 0; i < n; i += piece) {
        const std::int64_t some = smaller(piece, n - i);
        math::map(some, e, [top](float v) ISOTOPE_INLINE_LAMBDA { return weight(v - top); }, x[0] + i);
        sum += math::sum(e, some);
      }
      const float rest = std::log(sum);
      math::map(n, y, [top, rest](float v) ISOTOPE_INLINE_LAMBDA { return (v - top) - rest; }, x[0]);
    });
  }
};
struct log_softmax_grad {
  static constexpr std::uint32_t inplace = 3;
  static constexpr std::int64_t scratch(const step_shapes& s) { return by_rows<2>::scratch(s); }
  static void run(const launch& l) {
    by_rows<2>::run(l, 0.8, [](const float* const* x, float* dx, std::int64_t n) {
      const float sum = math::sum(x[1], n);
      math::map(n, dx, [sum](float y, float dy) ISOTOPE_INLINE_LAMBDA { return dy - weight(y) * sum; }, x[0], x[1]);
    });
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable

namespace isotope::cpu {
template <VectorProgram P> struct kernel<op::softmax, P, kernels::portable> : portable::softmax {};
template <VectorProgram P> struct kernel<op::softmax_grad, P, kernels::portable> : portable::softmax_grad {};
template <VectorProgram P> struct kernel<op::log_softmax, P, kernels::portable> : portable::log_softmax {};
template <VectorProgram P> struct kernel<op::log_softmax_grad, P, kernels::portable> : portable::log_softmax_grad {};
}  // namespace isotope::cpu
