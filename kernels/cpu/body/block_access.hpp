#pragma once
/// Reads and writes strided tensors as f32 blocks of the flat (row-major) index.
///
/// Bound by bytes. Axes that are contiguous with one another are merged first, so that most operands are one run; a run in f32 is used in place.
#include <array>
#include <cstring>
#include <span>

#include <isotope/backend/cpu/launch.hpp>
#include <isotope/kernels/cpu/math/convert.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

/// y[i] = x[i stride] as f32.
template <class T> void widen_run(const T* x, std::int64_t stride, float* y, std::int64_t n) {
  if (stride == 0) {
    const auto value = float(*x);
    for (std::int64_t i = 0; i < n; ++i) y[i] = value;
  } else if (stride == 1) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = float(x[i]);
  } else {
    for (std::int64_t i = 0; i < n; ++i) y[i] = float(x[i * stride]);
  }
}
inline void widen_run(const void* x, dtype t, std::int64_t offset, std::int64_t stride, float* y, std::int64_t n) {
  switch (t) {
    case dtype::f32:
      if (stride == 1) {
        std::memcpy(y, static_cast<const float*>(x) + offset, std::size_t(n) * 4);
      } else {
        widen_run(static_cast<const float*>(x) + offset, stride, y, n);
      }
      break;
    case dtype::bf16:
      if (stride == 1) math::convert(static_cast<const bfloat16*>(x) + offset, y, n);
      else widen_run(static_cast<const bfloat16*>(x) + offset, stride, y, n);
      break;
    case dtype::f16: widen_run(static_cast<const float16*>(x) + offset, stride, y, n); break;
    case dtype::boolean:
    case dtype::u8: widen_run(static_cast<const std::uint8_t*>(x) + offset, stride, y, n); break;
    case dtype::i32: widen_run(static_cast<const std::int32_t*>(x) + offset, stride, y, n); break;
    default: break;
  }
}
/// y[i] = x[i], rounded to y's format.
inline void narrow_run(const float* x, void* y, dtype t, std::int64_t offset, std::int64_t n) {
  switch (t) {
    case dtype::f32: std::memcpy(static_cast<float*>(y) + offset, x, std::size_t(n) * 4); break;
    case dtype::bf16: math::convert(x, static_cast<bfloat16*>(y) + offset, n); break;
    case dtype::f16: math::convert(x, static_cast<float16*>(y) + offset, n); break;
    case dtype::boolean:
      for (std::int64_t i = 0; i < n; ++i) static_cast<std::uint8_t*>(y)[offset + i] = x[i] != 0.0f;
      break;
    default: break;
  }
}

/// The axes of several operands of the same dims. Neighbouring axes are merged where every operand is contiguous across them.
struct merged_axes {
  int rank = 0;
  extents dims{};
  std::array<extents, max_inputs> strides{};  // one entry per operand

  /// The operands broadcast to s: they align at the last axis and repeat along axes of size 1 or missing axes.
  merged_axes(const shape& s, std::span<const view> operands) {
    for (int i = 0; i < s.rank; ++i) {
      if (s[i] == 1) continue;
      bool joins = rank > 0;
      for (std::size_t k = 0; k < operands.size() && joins; ++k)
        joins = strides[k][std::size_t(rank - 1)] == stride(operands[k], i - s.rank) * s[i];
      if (!joins) ++rank;
      const auto at = std::size_t(rank - 1);
      dims[at] = joins ? dims[at] * s[i] : s[i];
      for (std::size_t k = 0; k < operands.size(); ++k) strides[k][at] = stride(operands[k], i - s.rank);
    }
    if (rank == 0) {
      rank = 1;
      dims[0] = 1;
    }
  }
  static std::int64_t stride(const view& x, int from_end) {
    const int i = x.dims.rank + from_end;
    return i < 0 || x.dims[i] == 1 ? 0 : x.strides[std::size_t(i)];
  }
  std::int64_t inner() const { return dims[std::size_t(rank - 1)]; }
  /// Whether operand k is contiguous over the whole flat index.
  bool one_run(std::size_t k) const { return rank == 1 && (strides[k][0] == 1 || dims[0] == 1); }

  /// Calls run(offset of the operand, inner stride, position in the range, length) for each run of the flat range [first, first + n).
  template <class F> void runs(std::size_t k, std::int64_t first, std::int64_t n, const F& run) const {
    extents at{};
    std::int64_t offset = 0, rest = first;
    for (int i = rank - 1; i >= 0; --i) {
      const auto a = std::size_t(i);
      at[a] = i == 0 ? rest : rest % dims[a];
      rest /= dims[a];
      offset += at[a] * strides[k][a];
    }
    const auto last = std::size_t(rank - 1);
    for (std::int64_t done = 0; done < n;) {
      const std::int64_t left = dims[last] - at[last], length = left < n - done ? left : n - done;
      run(offset, strides[k][last], done, length);
      done += length;
      offset += length * strides[k][last];
      at[last] += length;
      for (std::size_t a = last; a > 0 && at[a] == dims[a]; --a) {
        offset += strides[k][a - 1] - dims[a] * strides[k][a];
        at[a] = 0;
        ++at[a - 1];
      }
    }
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable
