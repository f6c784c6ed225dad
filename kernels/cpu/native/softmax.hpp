#pragma once
/// Bound by exp and by bytes. Along the last axis a row is read in place; its exponentials wait for their sum in f32, in the result itself or in a
/// buffer that L2 holds. Along another axis the portable kernels run.
#include <isotope/kernels/cpu/math/log.hpp>
#include <isotope/kernels/cpu/native/body/programs.hpp>
#include <isotope/kernels/cpu/native/math/exp.hpp>
#include <isotope/kernels/cpu/native/rows/exponential_sum.hpp>
#include <isotope/kernels/cpu/portable/softmax.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// Calls Own::row(x..., y, buffer, n) with pointers to each row along the last axis, if all tensors have one format; otherwise calls Other::run.
template <class Own, class Other, int Operands> struct by_last_axis {
  static constexpr std::uint32_t inplace = Other::inplace;

  static constexpr std::int64_t scratch(const step_shapes& s) { return Other::scratch(s); }
  static void run(const launch& l) {
    const portable::axis_rows a(l.in[0].dims, int(l.constants<op::softmax_shape>().axis));
    const bool done = a.inner == 1 && with_format({l.in[0].type, l.in[Operands - 1].type, l.out[0].type}, [&](auto t) {
                        if (a.length > 0) run_on<decltype(t)>(l, a.outer, a.length);
                      });
    if (!done) Other::run(l);
  }

 private:
  friend Own;
  by_last_axis() = default;

  template <class T> static void run_on(const launch& l, std::int64_t rows, std::int64_t n) {
    for_rows(l, rows, double(rows) * (30 + double(n) * 0.2), [&](std::int64_t r, int slice) {
      float* buffer = static_cast<float*>(l.scratch) + slice * (Operands + 1) * n;
      const T* x = l.in[0].as<const T>() + r * n;
      T* y = l.out[0].as<T>() + r * n;
      if constexpr (Operands == 2) Own::row(x, l.in[1].as<const T>() + r * n, y, n);
      else if constexpr (std::is_same_v<T, float>) Own::row(x, y, y, n);
      else Own::row(x, y, buffer, n);
    });
  }
};

struct softmax : by_last_axis<softmax, portable::softmax, 1> {
  /// @param e  where the exponentials wait: y if that is f32
  template <class T> static void row(const T* x, T* y, float* e, std::int64_t n) {
    const float top = largest(x, n);
    float sum[1];
    sum_columns<1, 4>(n, sum, [&](auto& s, std::int64_t j, auto amount) ISOTOPE_INLINE_LAMBDA {
      const vector v = lanewise::weight(load(x + j, amount) - top);
      store(e + j, v, amount);
      s[0] += within(v, amount);
    });
    const float scale = 1.0f / sum[0];
    put_columns(n, y, [&](std::int64_t j, auto amount) ISOTOPE_INLINE_LAMBDA { return load(e + j, amount) * scale; });
  }
};

struct softmax_grad : by_last_axis<softmax_grad, portable::softmax_grad, 2> {
  template <class T> static void row(const T* y, const T* dy, T* dx, std::int64_t n) {
    float dot[1];
    sum_columns<1, 4>(n, dot, [&](auto& s, std::int64_t j, auto amount) ISOTOPE_INLINE_LAMBDA {
      s[0] = lanewise::madd(load(y + j, amount), load(dy + j, amount), s[0]);
    });
    put_columns(n, dx,
                [&](std::int64_t j, auto amount) ISOTOPE_INLINE_LAMBDA { return load(y + j, amount) * (load(dy + j, amount) - dot[0]); });
  }
};

struct log_softmax : by_last_axis<log_softmax, portable::log_softmax, 1> {
  template <class T> static void row(const T* x, T* y, float*, std::int64_t n) {
    const exponential_sum s(x, n);
    const float rest = math::log(s.sum);
    put_columns(n, y, [&](std::int64_t j, auto amount) ISOTOPE_INLINE_LAMBDA { return (load(x + j, amount) - s.top) - rest; });
  }
};

struct log_softmax_grad : by_last_axis<log_softmax_grad, portable::log_softmax_grad, 2> {
  template <class T> static void row(const T* y, const T* dy, T* dx, std::int64_t n) {
    float sum[1];
    sum_columns<1, 4>(n, sum, [&](auto& s, std::int64_t j, auto amount) ISOTOPE_INLINE_LAMBDA { s[0] += load(dy + j, amount); });
    put_columns(n, dx, [&](std::int64_t j, auto amount) ISOTOPE_INLINE_LAMBDA {
      return lanewise::madd(lanewise::exp(load(y + j, amount)), lanewise::all(-sum[0]), load(dy + j, amount));
    });
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native

namespace isotope::cpu {
template <NativeProgram P> struct kernel<op::softmax, P, kernels::native> : native::softmax {};
template <NativeProgram P> struct kernel<op::softmax_grad, P, kernels::native> : native::softmax_grad {};
template <NativeProgram P> struct kernel<op::log_softmax, P, kernels::native> : native::log_softmax {};
template <NativeProgram P> struct kernel<op::log_softmax_grad, P, kernels::native> : native::log_softmax_grad {};
}  // namespace isotope::cpu
