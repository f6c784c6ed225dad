#pragma once
/// Bound by bytes: a row stays in L1 between the statistics and the result. The gradient sums dweight and dbias of each chunk of rows separately,
/// then adds the chunks in order.
#include <cmath>

#include <isotope/kernels/cpu/body/programs.hpp>
#include <isotope/kernels/cpu/math/sum.hpp>
#include <isotope/kernels/cpu/rows/rows.hpp>
#include <isotope/op/layer_norm.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

struct layer_norm {
  static constexpr std::uint32_t inplace = 1;

  static constexpr std::int64_t scratch(const step_shapes& s) {
    const std::int64_t C = s.in[0].cols();
    return 4 * C * (2 + 2 * row_chunks::limit(s.in[0].rows()));
  }
  static void run(const launch& l) {
    const std::int64_t C = l.in[0].dims.cols(), rows = l.in[0].dims.rows();
    if (rows == 0) return;
    if (C == 0) return write_undefined(l.out[1]), write_undefined(l.out[2]);
    auto* buffers = static_cast<float*>(l.scratch);
    const float* weight = read_row(l.in[1], 0, C, buffers);
    const float* bias = read_row(l.in[2], 0, C, buffers + C);
    const auto epsilon = float(l.constants<op::layer_norm>().epsilon), count = float(C);
    for_rows(l, rows, double(rows * C) * 0.35, [&](std::int64_t r, int slice) {
      float* own = buffers + (2 + 2 * slice) * C;
      const float* x = read_row(l.in[0], r, C, own);
      float* y = target_row(l.out[0], r, C, own + C);
      const float mean = math::sum(x, C) / count;
      const float rstd = 1.0f / std::sqrt(math::sum_squares_about(x, C, mean) / count + epsilon);
      ISOTOPE_IVDEP
      for (std::int64_t c = 0; c < C; ++c) y[c] = (x[c] - mean) * rstd * weight[c] + bias[c];
      finish_row(l.out[0], r, C, y);
      l.out[1].as<float>()[r] = mean;
      l.out[2].as<float>()[r] = rstd;
    });
  }
};

struct layer_norm_grad {
  static constexpr std::uint32_t inplace = 0b100001;  // x or dy may be overwritten: a row is read before its dx is written
  static constexpr bool takes_addend = true;

  static constexpr std::int64_t scratch(const step_shapes& s) {
    const std::int64_t C = s.in[0].cols();
    return 4 * C * (1 + 5 * row_chunks::limit(s.in[0].rows()));
  }
  static void run(const launch& l) {
    const view &dx = l.out[0], &dweight = l.out[1], &dbias = l.out[2];
    const std::int64_t C = dx.dims.cols(), rows = dx.dims.rows();
    if (C == 0) return;
    const row_chunks chunks(rows);
    auto* partial = static_cast<float*>(l.scratch);  // (chunks, 2, C): dweight, dbias
    float* buffers = partial + 2 * C * row_chunks::limit(rows);
    const float* weight = read_row(l.in[1], 0, C, buffers);
    for_tasks(l, chunks.count, double(rows * C) * 0.5, [&](std::int64_t t, int slice) {
      float* own = buffers + (1 + 3 * slice) * C;
      float *dw = partial + 2 * t * C, *db = dw + C;
      std::memset(dw, 0, std::size_t(2 * C) * 4);
      for (std::int64_t r = chunks.begin(t); r < chunks.end(t); ++r) {
        const float* x = read_row(l.in[0], r, C, own);
        const float* dy = read_row(l.in[5], r, C, own + C);
        float* d = target_row(dx, r, C, own + 2 * C);
        const float mean = l.in[3].as<const float>()[r], rstd = l.in[4].as<const float>()[r];
        const auto e = [](auto& y, const auto& g, const auto& w) { y = g * w; };
        const auto eh = [=](auto& y, const auto& g, const auto& w, const auto& v) { y = g * w * ((v - mean) * rstd); };
        const float avg_e = math::reduce<float>(C, math::addition{}, e, dy, weight) / float(C);
        const float avg_eh = math::reduce<float>(C, math::addition{}, eh, dy, weight, x) / float(C);
        ISOTOPE_IVDEP
        for (std::int64_t c = 0; c < C; ++c) {
          const float h = (x[c] - mean) * rstd, g = dy[c];
          dw[c] += g * h;
          db[c] += g;
          d[c] = rstd * (g * weight[c] - avg_e - h * avg_eh);
        }
        finish_row(dx, r, C, d);
        if (l.in.size() > 6) add_to_row(dx, l.in[6], r, C, d, own);
      }
    });
    sum_partials(partial, chunks.count, 2 * C, dweight.as<float>(), C);
    sum_partials(partial + C, chunks.count, 2 * C, dbias.as<float>(), C);
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable

namespace isotope::cpu {
template <VectorProgram P> struct kernel<op::layer_norm, P, kernels::portable> : portable::layer_norm {};
template <VectorProgram P> struct kernel<op::layer_norm_grad, P, kernels::portable> : portable::layer_norm_grad {};
}  // namespace isotope::cpu
