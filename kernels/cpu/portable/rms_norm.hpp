#pragma once
/// Bound by bytes, like layer_norm.
#include <cmath>

#include <isotope/kernels/cpu/body/programs.hpp>
#include <isotope/kernels/cpu/math/sum.hpp>
#include <isotope/kernels/cpu/rows/rows.hpp>
#include <isotope/op/rms_norm.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

struct rms_norm {
  static constexpr std::uint32_t inplace = 1;

  static constexpr std::int64_t scratch(const step_shapes& s) { return 4 * s.in[0].cols() * (1 + 2 * row_chunks::limit(s.in[0].rows())); }
  static void run(const launch& l) {
    const std::int64_t C = l.in[0].dims.cols(), rows = l.in[0].dims.rows();
    if (rows == 0) return;
    if (C == 0) return write_undefined(l.out[1]);
    auto* buffers = static_cast<float*>(l.scratch);
    const float* weight = read_row(l.in[1], 0, C, buffers);
    const auto epsilon = float(l.constants<op::rms_norm>().epsilon);
    for_rows(l, rows, double(rows * C) * 0.3, [&](std::int64_t r, int slice) {
      float* own = buffers + (1 + 2 * slice) * C;
      const float* x = read_row(l.in[0], r, C, own);
      float* y = target_row(l.out[0], r, C, own + C);
      const float rstd = 1.0f / std::sqrt(math::sum_squares(x, C) / float(C) + epsilon);
      ISOTOPE_IVDEP
      for (std::int64_t c = 0; c < C; ++c) y[c] = x[c] * rstd * weight[c];
      finish_row(l.out[0], r, C, y);
      l.out[1].as<float>()[r] = rstd;
    });
  }
};

struct rms_norm_grad {
  static constexpr std::uint32_t inplace = 0b1001;  // x or dy may be overwritten: a row is read before its dx is written
  static constexpr bool takes_addend = true;

  static constexpr std::int64_t scratch(const step_shapes& s) { return 4 * s.in[0].cols() * (1 + 4 * row_chunks::limit(s.in[0].rows())); }
  static void run(const launch& l) {
    const view& dx = l.out[0];
    const std::int64_t C = dx.dims.cols(), rows = dx.dims.rows();
    if (C == 0) return;
    const row_chunks chunks(rows);
    auto* partial = static_cast<float*>(l.scratch);  // (chunks, C)
    float* buffers = partial + C * row_chunks::limit(rows);
    const float* weight = read_row(l.in[1], 0, C, buffers);
    for_tasks(l, chunks.count, double(rows * C) * 0.4, [&](std::int64_t t, int slice) {
      float* own = buffers + (1 + 3 * slice) * C;
      float* dw = partial + t * C;
      std::memset(dw, 0, std::size_t(C) * 4);
      for (std::int64_t r = chunks.begin(t); r < chunks.end(t); ++r) {
        const float* x = read_row(l.in[0], r, C, own);
        const float* dy = read_row(l.in[3], r, C, own + C);
        float* d = target_row(dx, r, C, own + 2 * C);
        const float rstd = l.in[2].as<const float>()[r];
        const auto eh = [=](auto& y, const auto& g, const auto& w, const auto& v) { y = g * w * (v * rstd); };
        const float avg_eh = math::reduce<float>(C, math::addition{}, eh, dy, weight, x) / float(C);
        ISOTOPE_IVDEP
        for (std::int64_t c = 0; c < C; ++c) {
          const float h = x[c] * rstd, g = dy[c];
          dw[c] += g * h;
          d[c] = rstd * (g * weight[c] - h * avg_eh);
        }
        finish_row(dx, r, C, d);
        if (l.in.size() > 4) add_to_row(dx, l.in[4], r, C, d, own);
      }
    });
    sum_partials(partial, chunks.count, C, l.out[1].as<float>(), C);
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable

namespace isotope::cpu {
template <VectorProgram P> struct kernel<op::rms_norm, P, kernels::portable> : portable::rms_norm {};
template <VectorProgram P> struct kernel<op::rms_norm_grad, P, kernels::portable> : portable::rms_norm_grad {};
}  // namespace isotope::cpu
