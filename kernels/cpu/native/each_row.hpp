#pragma once
/// The loop of native element-wise instructions: whole vectors, row by row. Bound by L1 for plain arithmetic, by flops for the functions.
///
/// bf16 operands are widened and results rounded in registers. A shorter rest is copied to a padded vector and goes through the same code, so an
/// element's bits do not depend on its place.
#include <isotope/backend/cpu/launch.hpp>
#include <isotope/kernels/cpu/math/convert.hpp>
#include <isotope/kernels/cpu/native/math/lanes.hpp>
#include <isotope/kernels/cpu/native/programs.hpp>
#include <utility>

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
namespace native {

/// `tile` and `block` of an instruction whose `Formula::of` takes a vector of each operand, or those and the scalar.
template <class Formula, int Operands> struct each_row {
  static void tile(const row_view* in, const row_target& out, std::int64_t rows, std::int64_t n, double scalar) {
    bool wide = !out.rounds && out.rounded == nullptr;
    for (int k = 0; k < Operands; ++k) wide = wide && in[k].type == dtype::f32;
    constexpr auto each = std::make_index_sequence<std::size_t(Operands)>{};
    if (wide) tile_of<true>(in, out, rows, n, float(scalar), each);
    else tile_of<false>(in, out, rows, n, float(scalar), each);
  }
  static void block(const void* const* in, void* out, std::int64_t n, double scalar) {
    row_view rows[Operands];
    for (int k = 0; k < Operands; ++k) rows[k].data = in[k];
    row_target to;
    to.data = static_cast<float*>(out);
    tile(rows, to, 1, n, scalar);
  }

 private:
  friend Formula;
  each_row() = default;

  /// A row, f32 or bf16.
  struct source {
    const float* wide;
    const bfloat16* half;
    source(const row_view& x, std::int64_t row)
        : wide(x.type == dtype::f32 ? static_cast<const float*>(x.data) + row * x.stride : nullptr),
          half(x.type == dtype::f32 ? nullptr : static_cast<const bfloat16*>(x.data) + row * x.stride) {}
  };
  struct target {
    float* wide;
    bfloat16* half;
    bool rounds;
  };

  /// @tparam Wide  all rows are f32, and nothing is rounded
  template <bool Wide, std::size_t... K>
  static ISOTOPE_INLINE void tile_of(const row_view* in, const row_target& out, std::int64_t rows, std::int64_t n, float scalar,
                                     std::index_sequence<K...>) {
    for (std::int64_t r = 0; r < rows; ++r) {
      const source x[] = {source(in[K], r)...};
      const target y{out.data == nullptr ? nullptr : out.data + r * out.stride,
                     out.rounded == nullptr ? nullptr : out.rounded + r * out.rounded_stride, out.rounds};
      std::int64_t j = 0;
      for (; j + lanes <= n; j += lanes) put<Wide>(y, j, value(scalar, take<Wide>(x[K], j)...));
      if (j < n) put_some<Wide>(y, j, value(scalar, take_some<Wide>(x[K], j, n - j)...), n - j);
    }
  }
  template <class... X> static ISOTOPE_INLINE vector value(float scalar, X... x) {
    if constexpr (requires { Formula::of(x..., scalar); }) return Formula::of(x..., scalar);
    else return Formula::of(x...);
  }
  template <bool Wide> static ISOTOPE_INLINE vector take(const source& x, std::int64_t j) {
    if (Wide || x.wide != nullptr) {
      vector v;
      __builtin_memcpy(&v, x.wide + j, sizeof v);
      return v;
    }
    return std::bit_cast<vector>(math::bf16_lanes::widened(x.half + j));
  }
  template <bool Wide> static ISOTOPE_INLINE vector take_some(const source& x, std::int64_t j, std::int64_t n) {
    float padded[lanes] = {};
    for (std::int64_t i = 0; i < n; ++i) padded[i] = Wide || x.wide != nullptr ? x.wide[j + i] : float(x.half[j + i]);
    vector v;
    __builtin_memcpy(&v, padded, sizeof v);
    return v;
  }
  template <bool Wide> static ISOTOPE_INLINE void put(const target& y, std::int64_t j, vector v) {
    auto u = std::bit_cast<math::bf16_lanes::words>(v);
    if (!Wide && y.rounds) u = math::bf16_lanes::rounded(u) & 0xffff'0000u;
    if (Wide || y.wide != nullptr) math::bf16_lanes::put(u, y.wide + j);
    if (!Wide && y.half != nullptr) math::bf16_lanes::put_upper(u, y.half + j);
  }
  template <bool Wide> static ISOTOPE_INLINE void put_some(const target& y, std::int64_t j, vector v, std::int64_t n) {
    float wide[lanes];
    bfloat16 half[lanes];
    put<Wide>({wide, half, y.rounds}, 0, v);
    for (std::int64_t i = 0; i < n; ++i) {
      if (Wide || y.wide != nullptr) y.wide[j + i] = wide[i];
      if (!Wide && y.half != nullptr) y.half[j + i] = half[i];
    }
  }
};

}  // namespace native
}  // namespace arch
}  // namespace isotope::cpu
