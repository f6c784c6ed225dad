#pragma once
/// Bound by bytes between f32, bf16 and f16, where a conversion through f32 rounds once. Other pairs convert one element at a time through f64 (i64
/// directly), rounding to odd before the narrow formats.
#include <bit>
#include <cmath>
#include <limits>

#include <isotope/kernels/cpu/portable/copy.hpp>
#include <isotope/op/cast.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

/// Returns the f32 next to x whose last bit tells whether anything was cut off: rounding that to 8 or 11 bits gives x rounded once.
template <class Number> float sticky(Number x) {
  const auto f = float(x);
  if constexpr (std::is_integral_v<Number>) {
    // for |x| < 2^63, f64 with its last bit made sticky keeps enough
    const auto d = double(x);
    const auto back = d >= 0x1p63 ? std::numeric_limits<Number>::max() : Number(d);
    if (back == x) return sticky(d);
    const std::uint64_t bits = std::bit_cast<std::uint64_t>(d);
    const bool away = (d > 0) == (d >= 0x1p63 || back > x);
    return sticky(std::bit_cast<double>((away ? bits - 1 : bits) | 1u));
  } else {
    if (!(std::isfinite(x)) || double(f) == x) return f;
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(f);
    const bool away = std::fabs(double(f)) > std::fabs(x);
    return std::bit_cast<float>((away ? bits - 1 : bits) | 1u);
  }
}
/// Rounds toward zero; NaN gives 0, numbers out of range give the nearest end.
template <class To, class Number> To clamped(Number x) {
  using limits = std::numeric_limits<To>;
  if constexpr (std::is_integral_v<Number>) {
    return x < std::int64_t(limits::min()) ? limits::min() : x > std::int64_t(limits::max()) ? limits::max() : To(x);
  } else {
    if (x != x) return 0;
    return x <= double(limits::min()) ? limits::min() : x >= double(limits::max()) ? limits::max() : To(x);
  }
}

/// y[i] = x in format t; x is a double or a std::int64_t.
template <class Number> void convert_exactly(Number x, void* y, dtype t, std::int64_t i) {
  switch (t) {
    case dtype::f32: static_cast<float*>(y)[i] = float(x); break;
    case dtype::bf16: static_cast<bfloat16*>(y)[i] = bfloat16(sticky(x)); break;
    case dtype::f16: static_cast<float16*>(y)[i] = float16(sticky(x)); break;
    case dtype::f64: static_cast<double*>(y)[i] = double(x); break;
    case dtype::i32: static_cast<std::int32_t*>(y)[i] = clamped<std::int32_t>(x); break;
    case dtype::i64: static_cast<std::int64_t*>(y)[i] = clamped<std::int64_t>(x); break;
    case dtype::u8: static_cast<std::uint8_t*>(y)[i] = clamped<std::uint8_t>(x); break;
    case dtype::u16: static_cast<std::uint16_t*>(y)[i] = clamped<std::uint16_t>(x); break;
    case dtype::u32: static_cast<std::uint32_t*>(y)[i] = clamped<std::uint32_t>(x); break;
    case dtype::boolean: static_cast<std::uint8_t*>(y)[i] = x != 0; break;
    case dtype::q8_0:
    case dtype::q4_0: break;  // formats of weights alone
  }
}

struct cast {
  static constexpr std::int64_t task = 1 << 14, piece = 1024;

  static constexpr bool narrow(dtype t) { return t == dtype::f32 || t == dtype::bf16 || t == dtype::f16; }

  static void run(const launch& l) {
    const view &x = l.in[0], &y = l.out[0];
    const std::int64_t n = y.dims.count();
    const merged_axes axes(y.dims, {&x, 1});
    const bool fast = narrow(x.type) && narrow(y.type);
    for_tasks(l, divide_up(n, task), double(n) * (fast ? 0.2 : 2.0), [&](std::int64_t t, int) {
      const std::int64_t end = smaller(n, (t + 1) * task);
      for (std::int64_t i = t * task; i < end; i += piece) {
        const std::int64_t some = smaller(piece, end - i);
        alignas(64) float buffer[piece];
        axes.runs(0, i, some, [&](std::int64_t offset, std::int64_t stride, std::int64_t at, std::int64_t length) {
          if (fast) widen_run(x.data, x.type, offset, stride, buffer + at, length);
          else each(x, offset, stride, y, i + at, length);
        });
        if (fast) narrow_run(buffer, y.data, y.type, i, some);
      }
    });
  }

 private:
  static void each(const view& x, std::int64_t offset, std::int64_t stride, const view& y, std::int64_t at, std::int64_t n) {
    const auto from = [&](const auto* data) {
      for (std::int64_t i = 0; i < n; ++i) {
        const auto v = data[offset + i * stride];
        if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(v)>>) convert_exactly(std::int64_t(v), y.data, y.type, at + i);
        else if constexpr (std::is_same_v<std::remove_cvref_t<decltype(v)>, double>) convert_exactly(v, y.data, y.type, at + i);
        else convert_exactly(double(float(v)), y.data, y.type, at + i);
      }
    };
    switch (x.type) {
      case dtype::f32: from(x.as<const float>()); break;
      case dtype::bf16: from(x.as<const bfloat16>()); break;
      case dtype::f16: from(x.as<const float16>()); break;
      case dtype::f64: from(x.as<const double>()); break;
      case dtype::i32: from(x.as<const std::int32_t>()); break;
      case dtype::i64: from(x.as<const std::int64_t>()); break;
      case dtype::u16: from(x.as<const std::uint16_t>()); break;
      case dtype::u32: from(x.as<const std::uint32_t>()); break;
      case dtype::u8:
      case dtype::boolean: from(x.as<const std::uint8_t>()); break;
      case dtype::q8_0:
      case dtype::q4_0: break;  // formats of weights alone
    }
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable

namespace isotope::cpu {
template <VectorProgram P> struct kernel<op::cast, P, kernels::portable> : portable::cast {};
}  // namespace isotope::cpu
