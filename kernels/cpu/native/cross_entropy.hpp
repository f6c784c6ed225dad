#pragma once
/// Bound by exp, and by bytes once the logits exceed L2. Both directions read a row once: they take its maximum and the sum of its exponentials block
/// by block and scale the sum down where a block has a larger maximum. bf16 is widened and rounded in registers.
#include <isotope/kernels/cpu/math/log.hpp>
#include <isotope/kernels/cpu/native/body/programs.hpp>
#include <isotope/kernels/cpu/native/math/exp.hpp>
#include <isotope/kernels/cpu/native/rows/exponential_sum.hpp>
#include <isotope/kernels/cpu/portable/cross_entropy.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

struct cross_entropy {
  static constexpr std::int64_t scratch(const step_shapes& s) { return portable::cross_entropy::scratch(s); }
  static void run(const launch& l) {
    if (!with_format({l.in[0].type}, [&](auto t) { run_on<decltype(t)>(l); })) portable::cross_entropy::run(l);
  }

 private:
  template <class T> static void run_on(const launch& l) {
    const std::int64_t N = l.in[0].dims.cols(), V = l.constants<op::cross_entropy>().classes, rows = l.in[1].dims.count();
    const auto* targets = l.in[1].as<const std::int32_t>();
    auto* losses = static_cast<float*>(l.scratch);
    const row_chunks chunks(rows);
    for_tasks(l, chunks.count, double(rows) * (40 + double(V) * 0.13), [&](std::int64_t t, int) {
      const std::int64_t first = chunks.begin(t), end = chunks.end(t);
      for (std::int64_t r = first; r < end; ++r) {
        const exponential_sum s(l.in[0].as<const T>() + r * N, V);
        portable::put_statistics(l, r, s.top, s.sum);
        losses[r] = s.sum;
      }
      math::log(losses + first, losses + first, end - first);
      for (std::int64_t r = first; r < end; ++r) {
        const float top = l.out[1].as<const float>()[r], rest = losses[r];
        losses[r] = portable::counts(targets[r], V) ? (top - float(l.in[0].as<const T>()[r * N + targets[r]])) + rest : 0.0f;
      }
    });
    *l.out[0].as<float>() = portable::mean_of_counted(losses, targets, rows, V);
  }
};

struct cross_entropy_grad {
  static constexpr std::uint32_t inplace = 1;

  static void run(const launch& l) {
    if (!with_format({l.in[0].type, l.out[0].type}, [&](auto t) { run_on<decltype(t)>(l); })) portable::cross_entropy_grad::run(l);
  }

 private:
  template <class T> static void run_on(const launch& l) {
    const std::int64_t N = l.in[0].dims.cols(), V = l.constants<op::cross_entropy>().classes, rows = l.in[1].dims.count();
    const auto* targets = l.in[1].as<const std::int32_t>();
    const float k = portable::share_of_row(l, V);
    for_rows(l, rows, double(rows) * (20 + double(V) * 0.15), [&](std::int64_t r, int) {
      const T* x = l.in[0].as<const T>() + r * N;
      T* d = l.out[0].as<T>() + r * N;
      if (!portable::counts(targets[r], V)) {
        std::memset(static_cast<void*>(d), 0, std::size_t(N) * sizeof *d);
        return;
      }
      const float top = l.in[2].as<const float>()[r], sum = l.in[3].as<const float>()[r], factor = k / sum;
      const float hit = k * (math::exp(float(x[targets[r]]) - top) / sum - 1.0f);
      put_columns(V, d,
                  [&](std::int64_t j, auto amount) ISOTOPE_INLINE_LAMBDA { return factor * lanewise::exp(load(x + j, amount) - top); });
      d[targets[r]] = T(hit);
      std::memset(static_cast<void*>(d + V), 0, std::size_t(N - V) * sizeof *d);
    });
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native

namespace isotope::cpu {
template <NativeProgram P> struct kernel<op::cross_entropy, P, kernels::native> : native::cross_entropy {};
template <NativeProgram P> struct kernel<op::cross_entropy_grad, P, kernels::native> : native::cross_entropy_grad {};
}  // namespace isotope::cpu
