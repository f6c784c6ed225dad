#pragma once
/// The loop of native element-wise instructions: whole vectors, row by row. Bound by L1 for plain arithmetic, by flops for functions.
///
/// bf16 operands are widened and results rounded in registers. A shorter rest takes the same code, padded with zeros, so an element's bits do not
/// depend on its place.
#include <isotope/backend/cpu/launch.hpp>
#include <isotope/kernels/cpu/native/body/programs.hpp>
#include <isotope/kernels/cpu/native/rows/row_vectors.hpp>
#include <utility>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// Provides `tile` and `block` for an instruction whose `Formula::of` takes a vector of each operand, optionally followed by the scalar.
template <class Formula, int Operands> struct each_row {
  static void tile(const row_view* in, const row_target& out, std::int64_t rows, std::int64_t n, double scalar) {
    bool wide = !out.rounds && out.rounded == nullptr;
    for (int k = 0; k < Operands; ++k) wide = wide && in[k].type == dtype::f32;
    constexpr auto each = std::make_index_sequence<std::size_t(Operands)>{};
    if (wide) tile_of<formats::f32>(in, out, rows, n, float(scalar), each);
    else if (out.data == nullptr) tile_of<formats::to_bf16>(in, out, rows, n, float(scalar), each);
    else tile_of<formats::mixed>(in, out, rows, n, float(scalar), each);
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

  /// f32: all rows are f32 and nothing is rounded; to_bf16: results alone are bf16
  enum class formats { f32, to_bf16, mixed };

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

  template <formats F, std::size_t... K>
  static ISOTOPE_INLINE void tile_of(const row_view* in, const row_target& out, std::int64_t rows, std::int64_t n, float scalar,
                                     std::index_sequence<K...>) {
    for (std::int64_t r = 0; r < rows; ++r) {
      const source x[] = {source(in[K], r)...};
      const target y{out.data == nullptr ? nullptr : out.data + r * out.stride,
                     out.rounded == nullptr ? nullptr : out.rounded + r * out.rounded_stride, out.rounds};
      std::int64_t j = 0;
      if constexpr (F != formats::mixed)
        for (; j + 2 * lanes <= n; j += 2 * lanes) {
          const vector v = value(scalar, take<F>(x[K], j)...), w = value(scalar, take<F>(x[K], j + lanes)...);
          if constexpr (F == formats::f32) store(y.wide + j, v, w);
          else store(y.half + j, v, w);
        }
      for (; j + lanes <= n; j += lanes) put<F>(y, j, value(scalar, take<F>(x[K], j)...));
      if (j < n) put_some<F>(y, j, value(scalar, take_some<F>(x[K], j, n - j)...), n - j);
    }
  }
  template <class... X> static ISOTOPE_INLINE vector value(float scalar, X... x) {
    if constexpr (requires { Formula::of(x..., scalar); }) return Formula::of(x..., scalar);
    else return Formula::of(x...);
  }
  template <formats F> static ISOTOPE_INLINE bool is_wide(const void* wide) { return F == formats::f32 || wide != nullptr; }
  template <formats F> static ISOTOPE_INLINE vector take(const source& x, std::int64_t j) {
    return is_wide<F>(x.wide) ? load(x.wide + j, whole_vector{}) : load(x.half + j, whole_vector{});
  }
  template <formats F> static ISOTOPE_INLINE vector take_some(const source& x, std::int64_t j, std::int64_t n) {
    const part_of_vector rest{int(n)};
    return is_wide<F>(x.wide) ? load(x.wide + j, rest) : load(x.half + j, rest);
  }
  template <formats F> static ISOTOPE_INLINE void put(const target& y, std::int64_t j, vector v) {
    if constexpr (F == formats::f32) store(y.wide + j, v, whole_vector{});
    else if constexpr (F == formats::to_bf16) store(y.half + j, v, whole_vector{});
    else put_both(y, j, v, whole_vector{});
  }
  template <formats F> static ISOTOPE_INLINE void put_some(const target& y, std::int64_t j, vector v, std::int64_t n) {
    const part_of_vector rest{int(n)};
    if constexpr (F == formats::f32) store(y.wide + j, v, rest);
    else if constexpr (F == formats::to_bf16) store(y.half + j, v, rest);
    else put_both(y, j, v, rest);
  }
  template <class Amount> static ISOTOPE_INLINE void put_both(const target& y, std::int64_t j, vector v, Amount amount) {
    auto u = std::bit_cast<math::bf16_lanes::words>(v);
    if (y.rounds) u = math::bf16_lanes::rounded(u) & 0xffff'0000u;
    if (y.wide != nullptr) store(y.wide + j, std::bit_cast<vector>(u), amount);
    if (y.half != nullptr) store(y.half + j, std::bit_cast<vector>(u), amount);
  }
};

/// For a kernel of Op that is its own formula.
template <class Op, class P, int Operands> using each_of = each_row<kernel<Op, P, kernels::native>, Operands>;

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
