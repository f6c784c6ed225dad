#pragma once
/// Bound by loads and stores of L1, like layer_norm.
#include <cmath>

#include <isotope/kernels/cpu/native/body/programs.hpp>
#include <isotope/kernels/cpu/native/rows/norm_grad.hpp>
#include <isotope/kernels/cpu/portable/rms_norm.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

struct rms_norm {
  static constexpr std::uint32_t inplace = portable::rms_norm::inplace;

  static constexpr std::int64_t scratch(const step_shapes& s) { return portable::rms_norm::scratch(s); }
  static void run(const launch& l) {
    if (!with_format({l.in[0].type, l.out[0].type}, [&](auto t) { run_on<decltype(t)>(l); })) portable::rms_norm::run(l);
  }

 private:
  template <class T> static void run_on(const launch& l) {
    const std::int64_t C = l.in[0].dims.cols(), rows = l.in[0].dims.rows();
    if (rows == 0) return;
    if (C == 0) return portable::write_undefined(l.out[1]);
    const float* weight = portable::read_row(l.in[1], 0, C, static_cast<float*>(l.scratch));
    const row_chunks chunks(rows);
    for_tasks(l, chunks.count, double(rows) * (20 + double(C) * 0.08), [&](std::int64_t t, int) {
      for_groups(chunks.begin(t), chunks.end(t), [&](std::int64_t r, auto n) {
        normalise<n()>(l.in[0].as<const T>() + r * C, l.out[0].as<T>() + r * C, C, weight, float(l.constants<op::rms_norm>().epsilon),
                       l.out[1].as<float>() + r);
      });
    });
  }
  template <int Rows, class T> static void normalise(const T* x, T* y, std::int64_t C, const float* weight, float epsilon, float* rstds) {
    constexpr auto rows = std::make_index_sequence<std::size_t(Rows)>{};
    float rstd[Rows];
    sum_columns<Rows, 2>(C, rstd, [&](auto& sum, std::int64_t j, auto amount) ISOTOPE_INLINE_LAMBDA {
      math::unrolled(rows, [&](auto r) ISOTOPE_INLINE_LAMBDA {
        const vector v = load(x + std::int64_t(r) * C + j, amount);
        sum[r] = lanewise::madd(v, v, sum[r]);
      });
    });
    for (float& s : rstd) s = 1.0f / std::sqrt(s / float(C) + epsilon);
    put_rows<Rows>(C, y, [&](vector(&result)[Rows], std::int64_t j, auto amount) ISOTOPE_INLINE_LAMBDA {
      const vector w = load(weight + j, amount);
      math::unrolled(rows, [&](auto r) ISOTOPE_INLINE_LAMBDA { result[r] = load(x + std::int64_t(r) * C + j, amount) * rstd[r] * w; });
    });
    for (int r = 0; r < Rows; ++r) rstds[r] = rstd[r];
  }
};

struct rms_norm_grad : norm_grad<rms_norm_grad, portable::rms_norm_grad, 1> {
  static double nsec(std::int64_t C) { return 30 + double(C) * 0.12; }
  template <int Rows, class T> static void group(const norm_grad_rows<T>& o, float* dweight) {
    constexpr auto rows = std::make_index_sequence<std::size_t(Rows)>{};
    const std::int64_t C = o.C;
    float rstd[Rows], of_eh[Rows];  // the average of e h with e = dy weight
    for (int r = 0; r < Rows; ++r) rstd[r] = o.rstd[r];
    sum_columns<Rows, 2>(C, of_eh, [&](auto& sum, std::int64_t j, auto amount) ISOTOPE_INLINE_LAMBDA {
      const vector w = load(o.weight + j, amount);
      math::unrolled(rows, [&](auto r) ISOTOPE_INLINE_LAMBDA {
        const std::int64_t at = std::int64_t(r) * C + j;
        sum[r] = lanewise::madd(load(o.dy + at, amount) * w, within(load(o.x + at, amount) * rstd[r], amount), sum[r]);
      });
    });
    for (float& s : of_eh) s /= float(C);
    put_rows<Rows>(C, o.dx, [&](vector(&result)[Rows], std::int64_t j, auto amount) ISOTOPE_INLINE_LAMBDA {
      const vector w = load(o.weight + j, amount);
      vector dw = load(dweight + j, amount);
      math::unrolled(rows, [&](auto r) ISOTOPE_INLINE_LAMBDA {
        const std::int64_t at = std::int64_t(r) * C + j;
        const vector g = load(o.dy + at, amount), h = load(o.x + at, amount) * rstd[r];
        dw = lanewise::madd(g, h, dw);
        result[r] = plus_addend(o.addend, at, rstd[r] * lanewise::madd(-h, lanewise::all(of_eh[r]), g * w), amount);
      });
      store(dweight + j, dw, amount);
    });
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native

namespace isotope::cpu {
template <NativeProgram P> struct kernel<op::rms_norm, P, kernels::native> : native::rms_norm {};
template <NativeProgram P> struct kernel<op::rms_norm_grad, P, kernels::native> : native::rms_norm_grad {};
}  // namespace isotope::cpu
