#pragma once
/// How the reference kernels read and write tensors: any dtype, any strides, one element at a time.
///
/// They read every number exactly into a double, evaluate every formula in double in ascending order, and round the result once to the accumulation
/// format and from there to the stored one. For f32 and bf16 programs the reference is thereby almost correctly rounded, so that the distance of
/// another kernel from it is that kernel's error; f64 programs sum in f64.
#include <cmath>
#include <cstdint>

#include <isotope/backend/cpu/launch.hpp>
#include <isotope/core/compiler.hpp>
#include <isotope/core/quantized.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::reference {

/// Returns the element at offset i, in elements, as a double.
inline double load(const view& v, std::int64_t i) {
  switch (v.type) {
    case dtype::f32: return double(v.as<const float>()[i]);
    case dtype::bf16: return double(float(v.as<const bfloat16>()[i]));
    case dtype::f16: return double(float(v.as<const float16>()[i]));
    case dtype::f64: return v.as<const double>()[i];
    case dtype::i32: return double(v.as<const std::int32_t>()[i]);
    case dtype::i64: return double(v.as<const std::int64_t>()[i]);
    case dtype::u8: return double(v.as<const std::uint8_t>()[i]);
    case dtype::u16: return double(v.as<const std::uint16_t>()[i]);
    case dtype::u32: return double(v.as<const std::uint32_t>()[i]);
    case dtype::boolean: return v.as<const std::uint8_t>()[i] != 0 ? 1.0 : 0.0;
    case dtype::q8_0:
    case dtype::q4_0: {  // a weight (N, K), or its transpose
      const std::int64_t K = v.strides[0] == 1 ? v.dims[0] : v.dims[1];
      return double(quantized::element(v.type, v.as<const std::byte>(), K, i / K, i % K));
    }
  }
  return 0;
}

/// Rounds x as an element of format t, floating-point or boolean, is stored: bf16 and f16 through f32, boolean as x != 0.
inline double rounded(dtype t, double x) {
  switch (t) {
    case dtype::f32: return double(float(x));
    case dtype::bf16: return double(float(bfloat16(float(x))));
    case dtype::f16: return double(float(float16(float(x))));
    case dtype::boolean: return x != 0 ? 1.0 : 0.0;
    default: return x;
  }
}

/// Stores x at offset i. Integers must be exact already; op::cast rounds them.
inline void store(const view& v, std::int64_t i, double x) {
  switch (v.type) {
    case dtype::f32: v.as<float>()[i] = float(x); break;
    case dtype::bf16: v.as<bfloat16>()[i] = bfloat16(float(x)); break;
    case dtype::f16: v.as<float16>()[i] = float16(float(x)); break;
    case dtype::f64: v.as<double>()[i] = x; break;
    case dtype::i32: v.as<std::int32_t>()[i] = std::int32_t(x); break;
    case dtype::i64: v.as<std::int64_t>()[i] = std::int64_t(x); break;
    case dtype::u8: v.as<std::uint8_t>()[i] = std::uint8_t(x); break;
    case dtype::u16: v.as<std::uint16_t>()[i] = std::uint16_t(x); break;
    case dtype::u32: v.as<std::uint32_t>()[i] = std::uint32_t(x); break;
    case dtype::boolean: v.as<std::uint8_t>()[i] = x != 0 ? 1 : 0; break;
    case dtype::q8_0:
    case dtype::q4_0: break;  // formats of weights alone
  }
}

/// Iterates over the indices of a shape in row-major order.
class index {
 public:
  explicit index(const shape& s) : dims_(s), left_(s.count()) {}
  bool valid() const { return left_ > 0; }
  std::int64_t operator[](int axis) const { return at_[std::size_t(axis < 0 ? axis + dims_.rank : axis)]; }
  void next() {
    --left_;
    for (int k = dims_.rank - 1; k >= 0; --k) {
      if (++at_[std::size_t(k)] < dims_[k]) return;
      at_[std::size_t(k)] = 0;
    }
  }
  /// Returns the offset of the index in a tensor with these strides.
  std::int64_t in(const extents& strides) const {
    std::int64_t n = 0;
    for (int k = 0; k < dims_.rank; ++k) n += at_[std::size_t(k)] * strides[std::size_t(k)];
    return n;
  }

 private:
  shape dims_;
  extents at_{};
  std::int64_t left_;
};

/// Returns the strides of v as a tensor of `rank` axes, aligned at the last one: 0 along axes that broadcast.
inline extents repeated(const view& v, int rank) {
  extents r{};
  for (int k = 0; k < v.dims.rank; ++k)
    if (v.dims[k] != 1) r[std::size_t(k + rank - v.dims.rank)] = v.strides[std::size_t(k)];
  return r;
}

/// Separates the axes of x into those of a bit mask (`inner`) and the others (`outer`): an element lies at the sum of both offsets.
struct axes_apart {
  view outer, inner;
  axes_apart(const view& x, std::int64_t mask, bool keep = false) : outer(x), inner(x) {
    outer.dims = inner.dims = {};
    outer.strides = inner.strides = {};
    for (int k = 0; k < x.dims.rank; ++k)
      if (((mask >> k) & 1) == 0) push(outer, x.dims[k], x.strides[std::size_t(k)]);
      else {
        push(inner, x.dims[k], x.strides[std::size_t(k)]);
        if (keep) push(outer, 1, 0);
      }
  }

 private:
  static void push(view& v, std::int64_t size, std::int64_t stride) {
    v.strides[std::size_t(v.dims.rank)] = stride;
    v.dims.push(size);
  }
};
/// Separates the last axis of x from its rows.
inline axes_apart rows_of(const view& x) { return {x, std::int64_t(1) << (x.dims.rank - 1)}; }
inline std::int64_t last_stride(const view& x) { return x.strides[std::size_t(x.dims.rank - 1)]; }

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::reference
