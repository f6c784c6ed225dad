#pragma once
/// The rows of one head in the form that microkernels read and write: f32, in whole vectors. Bound by bytes of L1 and L2.
#include <isotope/kernels/cpu/attention/heads.hpp>
#include <isotope/kernels/cpu/native/gemm/pairs.hpp>
#include <isotope/kernels/cpu/native/gemm/vector_panels.hpp>
#include <isotope/kernels/cpu/native/math/lanes.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

using portable::head_rows;

/// Calls f with a pointer to the first element.
template <class F> void with_type(const head_rows& x, const F& f) {
  if (x.type == dtype::bf16) f(static_cast<const bfloat16*>(x.data) + x.at);
  else f(static_cast<const float*>(x.data) + x.at);
}
/// Whether rows can be read and written in place.
inline bool lie_whole(const head_rows& x, std::int64_t D) { return x.type == dtype::f32 && D % lanes == 0; }

/// Returns rows x D of a head: in place, or copied and padded with zeros where they have another format or would fall into few sets of L1.
inline row_block whole_rows(const head_rows& x, std::int64_t rows, std::int64_t D, float* room) {
  if (lie_whole(x, D) && x.stride % 256 != 0) return {x.f32(), x.stride, 1};
  const std::int64_t width = whole(D, lanes);
  with_type(x, [&](const auto* from) { pack_right(from, x.stride, 1, rows, D, width, room); });
  return {room, width, 1};
}
ISOTOPE_INLINE void put_vector(float* x, const vector& v) { __builtin_memcpy(x, &v, sizeof v); }
/// x[0 .. width) *= factor.
ISOTOPE_INLINE void scale_row(float* x, float factor, std::int64_t width) {
  for (std::int64_t d = 0; d < width; d += lanes) put_vector(x + d, load_vector(x + d) * factor);
}

/// to[i] = sum_d a[i, d] b[i, d] for i < rows, padded with 0 to whole vectors. The sums of `lanes` rows are transposed in registers.
inline void row_dots(const head_rows& a, const head_rows& b, std::int64_t rows, std::int64_t D, float* to) {
  with_type(a, [&](const auto* left) {
    with_type(b, [&](const auto* right) {
      for (std::int64_t i0 = 0; i0 < rows; i0 += lanes) {
        vector r[lanes] = {};
        for (std::int64_t i = 0; i < smaller(lanes, rows - i0); ++i) {
          const auto* x = left + (i0 + i) * a.stride;
          const auto* y = right + (i0 + i) * b.stride;
          vector sum{};
          std::int64_t d = 0;
          for (; d + lanes <= D; d += lanes) sum = lanewise::madd(load_vector(x + d), load_vector(y + d), sum);
          if (d < D) sum = lanewise::madd(load_some(x + d, D - d), load_some(y + d, D - d), sum);
          r[i] = sum;
        }
        transpose(r);
        for (std::int64_t half = lanes / 2; half > 0; half /= 2)
          for (std::int64_t i = 0; i < half; ++i) r[i] += r[i + half];
        put_vector(to + i0, r[0]);
      }
    });
  });
}

/// For each key and query of a block all ones or 0: what dropout keeps.
struct kept_words {
  static constexpr std::int64_t block = portable::attention_heads::block;
  alignas(64) std::uint32_t of[block * block];

  /// @param row  the first query's index among all of (B, H, S)
  void draw(const launch& l, const portable::attention_dropout& dropout, std::int64_t row, std::int64_t k0, std::int64_t keys) {
    for (std::int64_t k = 0; k < keys; k += 4) dropout.draw(l, row, (k0 + k) / 4, block, of + k * block);
  }
  ISOTOPE_INLINE vector left_of(const vector& v, std::int64_t key, std::int64_t query) const {
    lanewise::words w;
    __builtin_memcpy(&w, of + key * block + query, sizeof w);
    return lanewise::from_bits(lanewise::bits(v) & w);
  }
};

using lane_numbers __attribute__((vector_size(config::vector_bytes))) = std::int32_t;
ISOTOPE_INLINE lane_numbers numbered() {
  lane_numbers lane{};
#pragma GCC unroll 16
  for (int i = 0; i < int(lanes); ++i) lane[i] = i;
  return lane;
}
/// Returns v with `hidden` in the first n lanes.
ISOTOPE_INLINE vector hide(const vector& v, std::int64_t n, float hidden) {
  return numbered() < std::int32_t(n) ? lanewise::all(hidden) : v;
}
/// Returns v with `hidden` in the lanes from n on.
ISOTOPE_INLINE vector hide_from(const vector& v, std::int64_t n, float hidden) {
  return numbered() >= std::int32_t(n) ? lanewise::all(hidden) : v;
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
