#pragma once
/// Single instructions that compilers do not make of plain code, as inline functions. `config::has_...` (core/compiler.hpp) says whether a translation
/// unit may use one; without it a function does nothing, and callers ask first. `vector` stands for vectors of config::vector_bytes.
#include <cstdint>

#include "../../core/compiler.hpp"

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
namespace isa {

/// Returns the square roots of four f32.
ISOTOPE_INLINE config::float_quad sqrt_quad(const config::float_quad& v) {
#if defined(__clang__)
  return __builtin_elementwise_sqrt(v);
#elif defined(__x86_64__)
  return __builtin_ia32_sqrtps(v);
#else
  return config::float_quad{__builtin_sqrtf(v[0]), __builtin_sqrtf(v[1]), __builtin_sqrtf(v[2]), __builtin_sqrtf(v[3])};
#endif
}
/// Returns the square roots of a vector of f32, where native kernels exist.
template <class V> ISOTOPE_INLINE V sqrt_lanes(const V& v) {
#if defined(__clang__)
  return __builtin_elementwise_sqrt(v);
#elif defined(__AVX512F__)
  return __builtin_ia32_sqrtps512_mask(v, v, -1, 4);
#elif defined(__AVX__) && defined(__FMA__)
  return __builtin_ia32_sqrtps256(v);
#else
  return v;
#endif
}
/// Returns a b + c of vectors of f32, rounded once where config::has_fma.
template <class V> ISOTOPE_INLINE V fma_lanes(const V& a, const V& b, const V& c) {
#if defined(__clang__)
  return __builtin_elementwise_fma(a, b, c);
#elif defined(__AVX512F__)
  return __builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4);
#elif defined(__AVX__) && defined(__FMA__)
  return __builtin_ia32_vfmaddps256(a, b, c);
#else
  return a * b + c;
#endif
}

// These need config::has_bf16_pairs.
/// sum += the products of the pairs of bf16 in a and b, vectors of 32-bit words.
template <class V, class W>
ISOTOPE_INLINE void add_pairs([[maybe_unused]] V& sum, [[maybe_unused]] const W& a, [[maybe_unused]] const W& b) {
#if defined(__AVX512BF16__) && defined(__AVX512DQ__)
  asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
#endif
}
/// y = x rounded to bf16; subnormal numbers become zero.
template <class Y, class V> ISOTOPE_INLINE void round_to_bf16([[maybe_unused]] Y& y, [[maybe_unused]] const V& x) {
#if defined(__AVX512BF16__) && defined(__AVX512DQ__)
  asm("vcvtneps2bf16 %1, %0" : "=v"(y) : "v"(x));
#endif
}
/// The same for two vectors: y = a, then b.
template <class Y, class V>
ISOTOPE_INLINE void round_two_to_bf16([[maybe_unused]] Y& y, [[maybe_unused]] const V& a, [[maybe_unused]] const V& b) {
#if defined(__AVX512BF16__) && defined(__AVX512DQ__)
  asm("vcvtne2ps2bf16 %1, %2, %0" : "=v"(y) : "v"(a), "v"(b));
#endif
}
/// Sets a bit of the mask where x, f32, is subnormal.
template <class V> ISOTOPE_INLINE void find_subnormal_lanes([[maybe_unused]] std::uint16_t& mask, [[maybe_unused]] const V& x) {
#if defined(__AVX512BF16__) && defined(__AVX512DQ__)
  asm("vfpclassps $32, %1, %0" : "=Yk"(mask) : "v"(x));
#endif
}
/// least = the smaller of |least| and |x|; NaN loses against a number.
template <class V> ISOTOPE_INLINE void keep_least_magnitude([[maybe_unused]] V& least, [[maybe_unused]] const V& x) {
#if defined(__AVX512BF16__) && defined(__AVX512DQ__)
  asm("vrangeps $10, %1, %0, %0" : "+v"(least) : "v"(x));
#endif
}

// These need config::has_bf16_tiles: a matrix unit with tiles 0 to 7 of 16 rows of 64 bytes.
/// g++ 12's own _tile_loadconfig declares 8 of the 64 bytes that are read, so that the stores to the rest may be dropped.
template <class S> ISOTOPE_INLINE void configure_tiles([[maybe_unused]] const S& sizes) {
#if defined(__AMX_TILE__) && defined(__AMX_BF16__)
  asm volatile("ldtilecfg %0" ::"m"(sizes));
#endif
}
ISOTOPE_INLINE void release_tiles() {
#if defined(__AMX_TILE__) && defined(__AMX_BF16__)
  asm volatile("tilerelease");
#endif
}
template <int T> ISOTOPE_INLINE void zero_tile() {
#if defined(__AMX_TILE__) && defined(__AMX_BF16__)
  asm volatile("tilezero %%tmm%c0" ::"i"(T));
#endif
}
template <int T> ISOTOPE_INLINE void load_tile([[maybe_unused]] const void* at, [[maybe_unused]] std::int64_t stride) {
#if defined(__AMX_TILE__) && defined(__AMX_BF16__)
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(at), "r"(stride), "i"(T) : "memory");
#endif
}
template <int T> ISOTOPE_INLINE void store_tile([[maybe_unused]] void* at, [[maybe_unused]] std::int64_t stride) {
#if defined(__AMX_TILE__) && defined(__AMX_BF16__)
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(at), "r"(stride), "i"(T) : "memory");
#endif
}
template <int C, int A, int B> ISOTOPE_INLINE void add_tile_pairs() {
#if defined(__AMX_TILE__) && defined(__AMX_BF16__)
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(C), "i"(A), "i"(B));
#endif
}

// These need config::has_lane_masks. v is a vector of f32, or of as many numbers of 16 bits. "m" of whole vectors tells the compiler of more memory
// than is read or written.
/// v = the elements of x whose bit of the mask is set; other elements of v stay, and other elements of x are not touched.
template <class V, class T>
ISOTOPE_INLINE void load_lanes([[maybe_unused]] V& v, [[maybe_unused]] const T* x, [[maybe_unused]] std::uint16_t mask) {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
  if constexpr (sizeof(v) == 64) asm("vmovups %1, %0%{%2%}" : "+v"(v) : "m"(*(const char(*)[64])(x)), "Yk"(mask));
  else asm("vmovdqu16 %1, %0%{%2%}" : "+v"(v) : "m"(*(const char(*)[32])(x)), "Yk"(mask));
#endif
}
/// The elements of y whose bit of the mask is set = those of v; others are not touched.
template <class V, class T>
ISOTOPE_INLINE void store_lanes([[maybe_unused]] T* y, [[maybe_unused]] const V& v, [[maybe_unused]] std::uint16_t mask) {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
  if constexpr (sizeof(v) == 64) asm("vmovups %1, %0%{%2%}" : "+m"(*(char(*)[64])(y)) : "v"(v), "Yk"(mask));
  else asm("vmovdqu16 %1, %0%{%2%}" : "+m"(*(char(*)[32])(y)) : "v"(v), "Yk"(mask));
#endif
}

/// y = x of 16 bits as 32, where config::has_wide_halves: x is half a vector. g++ 12 widens one half and then the other.
template <class Y, class H> ISOTOPE_INLINE void widen_halves([[maybe_unused]] Y& y, [[maybe_unused]] const H& x) {
#if defined(__AVX512F__)
  asm("vpmovzxwd %1, %0" : "=v"(y) : "vm"(x));
#endif
}
/// y = 2^k y for whole k, vectors of f32, rounded once, where config::has_scaled_lanes.
template <class V> ISOTOPE_INLINE void scale_lanes([[maybe_unused]] V& y, [[maybe_unused]] const V& k) {
#if defined(__AVX512F__)
  asm("vscalefps %1, %0, %0" : "+v"(y) : "v"(k));
#endif
}
/// y = the elements of the table, a vector, at the places in the low bits of 32-bit words, where config::has_lane_tables.
template <class V, class W> ISOTOPE_INLINE void look_up_lanes([[maybe_unused]] V& y, [[maybe_unused]] W table, [[maybe_unused]] W places) {
#if defined(__AVX2__)
  asm("vpermd %2, %1, %0" : "=v"(y) : "v"(places), "vm"(table));
#endif
}
/// y = a < b ? a : b of vectors of f32, so b where one is NaN, where config::has_ordered_lanes.
template <class V> ISOTOPE_INLINE void take_smaller([[maybe_unused]] V& y, [[maybe_unused]] const V& a, [[maybe_unused]] const V& b) {
#if defined(__AVX__)
  asm("vminps %2, %1, %0" : "=v"(y) : "v"(a), "v"(b));
#endif
}
/// y = a > b ? a : b, likewise.
template <class V> ISOTOPE_INLINE void take_larger([[maybe_unused]] V& y, [[maybe_unused]] const V& a, [[maybe_unused]] const V& b) {
#if defined(__AVX__)
  asm("vmaxps %2, %1, %0" : "=v"(y) : "v"(a), "v"(b));
#endif
}

// These need config::has_streams.
/// Stores v past the caches; y is a multiple of its size.
template <class T, class V> ISOTOPE_INLINE void stream_lanes([[maybe_unused]] T* y, [[maybe_unused]] const V& v) {
#if defined(__AVX__)
  asm volatile("vmovntps %1, %0" : "=m"(*(char(*)[sizeof(v)])(y)) : "v"(v));
#endif
}
/// Makes what was streamed before it visible before what is stored after it.
ISOTOPE_INLINE void fence_streams() {
#if defined(__AVX__)
  asm volatile("sfence" ::: "memory");
#endif
}

}  // namespace isa
}  // namespace arch
}  // namespace isotope::cpu
