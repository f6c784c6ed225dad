#pragma once
/// Packs f32 operands for the microkernel: panels of whole vectors, one k after another, padded with zeros; and copies of rows.
///
/// Packing panels is bound by shuffles where memory is contiguous along k; everything else is bound by bytes.
#include <isotope/kernels/cpu/gemm/pack.hpp>
#include <isotope/kernels/cpu/math/convert.hpp>
#include <isotope/kernels/cpu/native/rows/transpose.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// Loads x[0 .. lanes) as f32.
template <class T> ISOTOPE_INLINE vector load_vector(const T* x) {
  vector v;
  if constexpr (std::is_same_v<T, float>) {
    __builtin_memcpy(&v, x, sizeof v);
  } else if constexpr (std::is_same_v<T, bfloat16>) {
    const auto wide = math::bf16_lanes::widened(x);
    __builtin_memcpy(&v, &wide, sizeof v);
  } else if constexpr (std::is_same_v<T, float16> && config::has_half_conversion && lanes >= 8) {
    using halves __attribute__((vector_size(2 * lanes))) = std::uint16_t;
    halves h;
    __builtin_memcpy(&h, x, sizeof h);
    isa::convert_halves(v, h);
  } else {
    portable::sixteen wide;
    if constexpr (lanes == 16) {
      portable::load_sixteen(x, wide);
    } else {
      T both[16] = {};
      __builtin_memcpy(both, x, std::size_t(lanes) * sizeof(T));
      portable::load_sixteen(both, wide);
    }
    __builtin_memcpy(&v, &wide, sizeof v);
  }
  return v;
}
/// Loads the first n < lanes elements, then zeros.
template <class T> ISOTOPE_NOINLINE vector load_some(const T* x, std::int64_t n) {
  vector v{};
  for (std::int64_t i = 0; i < n; ++i) v[i] = float(x[i]);
  return v;
}

/// Stores the first bytes of v.
template <class V> ISOTOPE_INLINE void store_some(void* to, const V& v, std::size_t bytes) {
  if (bytes == sizeof v) __builtin_memcpy(to, &v, sizeof v);  // constant size: no call
  else __builtin_memcpy(to, &v, bytes);
}

/// A[i, k] at data[i row_stride + k k_stride].
struct row_block {
  const float* data;
  std::int64_t row_stride, k_stride;
};

/// Copies blocking::rows rows of an operand over one block of K to L1 or L2: as rows contiguous along k, or one k after another.
class row_copy {
 public:
  /// Returns the floats between rows of a block `depth` long: an odd number of cache lines, so that rows do not fall into the same sets.
  static constexpr std::int64_t stride(std::int64_t depth) { return (divide_up(depth, 16) / 2 * 2 + 1) * 16; }
  static constexpr std::int64_t floats(std::int64_t depth) { return blocking::rows * stride(depth) + 2 * lanes; }

  /// @param y        has room for floats(depth)
  /// @param along_k  the operand is contiguous along k
  row_copy(float* y, std::int64_t depth, bool along_k) : y_(y), stride_(stride(depth)), along_k_(along_k) {}
  row_block block() const { return along_k_ ? row_block{y_, stride_, 1} : row_block{y_, 1, blocking::rows}; }

  /// Takes x[i row_stride + k k_stride] for i < rows <= blocking::rows, k < depth.
  template <class T> void take(const T* x, std::int64_t row_stride, std::int64_t k_stride, std::int64_t rows, std::int64_t k) const {
    float* y = y_;
    if (along_k_) {
      for (std::int64_t i = 0; i < rows; ++i) {
        std::int64_t j = 0;
        for (; j + lanes <= k; j += lanes) put(y + i * stride_ + j, load_vector(x + i * row_stride + j));
        for (; j < k; ++j) y[i * stride_ + j] = float(x[i * row_stride + j]);
      }
    } else if (row_stride == 1 && rows == blocking::rows && k_stride >= lanes) {
      // The next vector overwrites what a vector has too much. Only the last k is copied singly, because the memory behind it may not be readable.
      for (std::int64_t j = 0; j + 1 < k; ++j)
        for (std::int64_t i = 0; i < blocking::rows; i += lanes) put(y + j * blocking::rows + i, load_vector(x + j * k_stride + i));
      for (std::int64_t i = 0; k > 0 && i < rows; ++i) y[(k - 1) * blocking::rows + i] = float(x[(k - 1) * k_stride + i]);
    } else {
      for (std::int64_t j = 0; j < k; ++j)
        for (std::int64_t i = 0; i < rows; ++i) y[j * blocking::rows + i] = float(x[i * row_stride + j * k_stride]);
    }
  }

 private:
  static void put(float* y, const vector& v) { __builtin_memcpy(y, &v, sizeof v); }

  float* y_;
  std::int64_t stride_;
  bool along_k_;
};

/// Packs a panel of B: y[k width + j] for j < width.
///
/// @param x      B[k, j] at x[k k_stride + j col_stride], j < cols
/// @param cols   at most width, a multiple of lanes; the other columns become zeros
template <class T>
void pack_right(const T* x, std::int64_t k_stride, std::int64_t col_stride, std::int64_t k, std::int64_t cols, std::int64_t width,
                float* y) {
  const std::int64_t whole = cols / lanes * lanes;
  std::int64_t done = 0;
  if (col_stride == 1) {
    if (cols == blocking::cols) {
      for (; done < k; ++done) {
#pragma GCC unroll 2
        for (int v = 0; v < int(blocking::vectors); ++v) {
          const vector some = load_vector(x + done * k_stride + v * lanes);
          __builtin_memcpy(y + done * blocking::cols + v * lanes, &some, sizeof some);
        }
      }
      return;
    }
    for (; done < k; ++done) {
      const T* from = x + done * k_stride;
      float* to = y + done * width;
      for (std::int64_t j = 0; j < width; j += lanes) {
        const vector v = j < whole ? load_vector(from + j) : load_some(from + j, cols - j);
        __builtin_memcpy(to + j, &v, sizeof v);
      }
    }
    return;
  }
  if (k_stride == 1) {
    for (; done + lanes <= k; done += lanes)
      for (std::int64_t j = 0; j < width; j += lanes) {
        vector r[lanes] = {};
        if (j < whole) {
#pragma GCC unroll 16
          for (int i = 0; i < int(lanes); ++i) r[i] = load_vector(x + (j + i) * col_stride + done);
        } else {
          for (std::int64_t i = 0; i < cols - j; ++i) r[i] = load_vector(x + (j + i) * col_stride + done);
        }
        transpose(r);
#pragma GCC unroll 16
        for (int i = 0; i < int(lanes); ++i) __builtin_memcpy(y + (done + i) * width + j, &r[i], sizeof r[i]);
      }
  }
  for (; done < k; ++done) {
    for (std::int64_t j = 0; j < cols; ++j) y[done * width + j] = float(x[done * k_stride + j * col_stride]);
    for (std::int64_t j = cols; j < width; ++j) y[done * width + j] = 0;
  }
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
