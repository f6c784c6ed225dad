#pragma once
/// Bound by loads and stores of L1: a group of rows stays there from the statistics to the result, and weights, dweight and dbias are loaded once per
/// group. The next rows are fetched meanwhile: where they have left L2, waiting for them takes a third of the time. bf16 is widened and rounded in registers. The
/// gradient sums dweight and dbias of each chunk of rows separately, then adds the chunks in order.
#include <cmath>

#include <isotope/kernels/cpu/native/body/programs.hpp>
#include <isotope/kernels/cpu/native/rows/norm_grad.hpp>
#include <isotope/kernels/cpu/portable/layer_norm.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

struct layer_norm {
  static constexpr std::uint32_t inplace = 1;

  static constexpr std::int64_t scratch(const step_shapes& s) { return portable::layer_norm::scratch(s); }
  static void run(const launch& l) {
    if (!with_format({l.in[0].type, l.out[0].type}, [&](auto t) { run_on<decltype(t)>(l); })) portable::layer_norm::run(l);
  }

 private:
  template <class T> static void run_on(const launch& l) {
    const std::int64_t C = l.in[0].dims.cols(), rows = l.in[0].dims.rows();
    if (rows == 0) return;
    if (C == 0) return portable::write_undefined(l.out[1]), portable::write_undefined(l.out[2]);
    auto* buffers = static_cast<float*>(l.scratch);
    const float* weight = portable::read_row(l.in[1], 0, C, buffers);
    const float* bias = portable::read_row(l.in[2], 0, C, buffers + C);
    const row_chunks chunks(rows);
    for_tasks(l, chunks.count, double(rows) * (30 + double(C) * 0.1), [&](std::int64_t t, int) {
      for_groups(chunks.begin(t), chunks.end(t), [&](std::int64_t r, auto n) {
        normalise<n()>(l.in[0].as<const T>() + r * C, l.out[0].as<T>() + r * C, C, weight, bias,
                       float(l.constants<op::layer_norm>().epsilon), l.out[1].as<float>() + r, l.out[2].as<float>() + r);
      });
    });
  }
  template <int Rows, class T>
  static void normalise(const T* x, T* y, std::int64_t C, const float* weight, const float* bias, float epsilon, float* means,
                        float* rstds) {
    constexpr auto rows = std::make_index_sequence<std::size_t(Rows)>{};
    float mean[Rows], rstd[Rows];
    sum_columns<Rows, 2>(C, mean, [&](auto& sum, std::int64_t j, auto amount) ISOTOPE_INLINE_LAMBDA {
      math::unrolled(rows, [&](auto r) ISOTOPE_INLINE_LAMBDA { sum[r] += load(x + std::int64_t(r) * C + j, amount); });
    });
    for (float& m : mean) m /= float(C);
    sum_columns<Rows, 2>(C, rstd, [&](auto& sum, std::int64_t j, auto amount) ISOTOPE_INLINE_LAMBDA {
      math::unrolled(rows, [&](auto r) ISOTOPE_INLINE_LAMBDA {
        fetch_line(x + (Rows + std::int64_t(r)) * C, j);
        const vector d = within(load(x + std::int64_t(r) * C + j, amount) - mean[r], amount);
        sum[r] = lanewise::madd(d, d, sum[r]);
      });
    });
    for (float& s : rstd) s = 1.0f / std::sqrt(s / float(C) + epsilon);
    put_rows<Rows>(C, y, [&](vector(&result)[Rows], std::int64_t j, auto amount) ISOTOPE_INLINE_LAMBDA {
      const vector w = load(weight + j, amount), b = load(bias + j, amount);
      math::unrolled(rows, [&](auto r) ISOTOPE_INLINE_LAMBDA {
        result[r] = lanewise::madd((load(x + std::int64_t(r) * C + j, amount) - mean[r]) * rstd[r], w, b);
      });
    });
    for (int r = 0; r < Rows; ++r) {
      means[r] = mean[r];
      rstds[r] = rstd[r];
    }
  }
};

struct layer_norm_grad : norm_grad<layer_norm_grad, portable::layer_norm_grad, 2> {
  static double nsec(std::int64_t C) { return 40 + double(C) * 0.15; }
  template <int Rows, class T> static void group(const norm_grad_rows<T>& o, float* column_sums) {
    constexpr auto rows = std::make_index_sequence<std::size_t(Rows)>{};
    const std::int64_t C = o.C;
    float* const dweight = column_sums;
    float* const dbias = column_sums + C;
    float mean[Rows], rstd[Rows], of_e[Rows], of_eh[Rows], sums[2 * Rows];  // averages of e = dy weight and of e h
    for (int r = 0; r < Rows; ++r) mean[r] = o.mean[r], rstd[r] = o.rstd[r];
    sum_columns<2 * Rows, 2>(C, sums, [&](auto& sum, std::int64_t j, auto amount) ISOTOPE_INLINE_LAMBDA {
      const vector w = load(o.weight + j, amount);
      math::unrolled(rows, [&](auto r) ISOTOPE_INLINE_LAMBDA {
        const std::int64_t at = std::int64_t(r) * C + j;
        const vector e = load(o.dy + at, amount) * w;
        sum[2 * r] += e;
        sum[2 * r + 1] = lanewise::madd(e, within((load(o.x + at, amount) - mean[r]) * rstd[r], amount), sum[2 * r + 1]);
      });
    });
    for (int r = 0; r < Rows; ++r) of_e[r] = sums[2 * r] / float(C), of_eh[r] = sums[2 * r + 1] / float(C);
    put_rows<Rows>(C, o.dx, [&](vector(&result)[Rows], std::int64_t j, auto amount) ISOTOPE_INLINE_LAMBDA {
      const vector w = load(o.weight + j, amount);
      vector dw = load(dweight + j, amount), db = load(dbias + j, amount);
      math::unrolled(rows, [&](auto r) ISOTOPE_INLINE_LAMBDA {
        const std::int64_t at = std::int64_t(r) * C + j;
        const vector g = load(o.dy + at, amount), h = (load(o.x + at, amount) - mean[r]) * rstd[r];
        dw = lanewise::madd(g, h, dw);
        db += g;
        result[r] = plus_addend(o.addend, at, rstd[r] * lanewise::madd(-h, lanewise::all(of_eh[r]), g * w - of_e[r]), amount);
      });
      store(dweight + j, dw, amount);
      store(dbias + j, db, amount);
    });
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native

namespace isotope::cpu {
template <NativeProgram P> struct kernel<op::layer_norm, P, kernels::native> : native::layer_norm {};
template <NativeProgram P> struct kernel<op::layer_norm_grad, P, kernels::native> : native::layer_norm_grad {};
}  // namespace isotope::cpu
