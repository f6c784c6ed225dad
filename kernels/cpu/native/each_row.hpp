#pragma once
/// The loop of native element-wise instructions: whole vectors, row by row. Bound by L1 for plain arithmetic, by flops for the functions.
///
/// A shorter rest is copied to a padded vector and goes through the same code, so an element's bits do not depend on its place.
#include <isotope/backend/cpu/launch.hpp>
#include <isotope/kernels/cpu/native/math/lanes.hpp>
#include <isotope/kernels/cpu/native/programs.hpp>
#include <utility>

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
namespace native {

/// `tile` and `block` of an instruction whose `Formula::of` takes a vector of each operand, or those and the scalar.
template <class Formula, int Operands> struct each_row {
  static void tile(const row_view* in, float* out, std::int64_t stride, std::int64_t rows, std::int64_t n, double scalar) {
    tile_of(in, out, stride, rows, n, float(scalar), std::make_index_sequence<std::size_t(Operands)>{});
  }
  static void block(const void* const* in, void* out, std::int64_t n, double scalar) {
    row_view rows[Operands];
    for (int k = 0; k < Operands; ++k) rows[k].data = static_cast<const float*>(in[k]);
    tile(rows, static_cast<float*>(out), 0, 1, n, scalar);
  }

 private:
  friend Formula;
  each_row() = default;

  template <std::size_t... K>
  static ISOTOPE_INLINE void tile_of(const row_view* in, float* out, std::int64_t stride, std::int64_t rows, std::int64_t n, float scalar,
                                     std::index_sequence<K...>) {
    for (std::int64_t r = 0; r < rows; ++r) {
      const float* const x[] = {in[K].data + r * in[K].stride...};
      float* const y = out + r * stride;
      std::int64_t j = 0;
      for (; j + lanes <= n; j += lanes) put(y + j, value(scalar, take(x[K] + j)...), lanes);
      if (j < n) put(y + j, value(scalar, take_some(x[K] + j, n - j)...), n - j);
    }
  }
  template <class... X> static ISOTOPE_INLINE vector value(float scalar, X... x) {
    if constexpr (requires { Formula::of(x..., scalar); }) return Formula::of(x..., scalar);
    else return Formula::of(x...);
  }
  static ISOTOPE_INLINE vector take(const float* x) {
    vector v;
    __builtin_memcpy(&v, x, sizeof v);
    return v;
  }
  static ISOTOPE_INLINE vector take_some(const float* x, std::int64_t n) {
    float padded[lanes] = {};
    for (std::int64_t j = 0; j < n; ++j) padded[j] = x[j];
    return take(padded);
  }
  static ISOTOPE_INLINE void put(float* y, vector v, std::int64_t n) {
    if (n == lanes) {
      __builtin_memcpy(y, &v, sizeof v);
    } else {
      float whole[lanes];
      __builtin_memcpy(whole, &v, sizeof v);
      for (std::int64_t j = 0; j < n; ++j) y[j] = whole[j];
    }
  }
};

}  // namespace native
}  // namespace arch
}  // namespace isotope::cpu
