#pragma once
/// Single instructions that compilers do not generate from plain code, as inline functions. `config::has_...` (core/compiler.hpp) says whether a translation
/// unit may use one. Where it may not, the function does nothing, so callers check first. A vector has config::vector_bytes bytes.
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
/// Returns the square roots of a vector of f32. Without AVX and FMA it returns v, since no native kernel is then compiled.
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
/// Returns a b + c of vectors of f32, rounded once if config::has_fma.
template <class V> ISOTOPE_INLINE V fma_lanes(const V& a, const V& b, const V& c) {
#if defined(__clang__)
  return __builtin_elementwise_fma(a, b, c);
#elif defined(__AVX512F__)
  if constexpr (sizeof(V) == 32) return __builtin_ia32_vfmaddps256(a, b, c);
  else return __builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4);
#elif defined(__AVX__) && defined(__FMA__)
  return __builtin_ia32_vfmaddps256(a, b, c);
#else
  return a * b + c;
#endif
}
/// The same into y, for vectors that builds without AVX, too, compile: g++ warns of those that functions return.
template <class V> ISOTOPE_INLINE void fma_lanes(V& y, const V& a, const V& b, const V& c) {
#if !defined(__AVX__) && !defined(__clang__)
  y = a * b + c;
#else
  y = fma_lanes(a, b, c);
#endif
}

// The functions from here to configure_tiles need config::has_bf16_pairs.
/// sum[i] += a[i].low b[i].low + a[i].high b[i].high, where a and b are vectors of 32-bit words of two bf16.
template <class V, class W>
ISOTOPE_INLINE void add_pairs([[maybe_unused]] V& sum, [[maybe_unused]] const W& a, [[maybe_unused]] const W& b) {
#if defined(__AVX512BF16__) && defined(__AVX512DQ__)
  asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
#endif
}
/// y = x rounded to bf16; subnormals become zero.
template <class Y, class V> ISOTOPE_INLINE void round_to_bf16([[maybe_unused]] Y& y, [[maybe_unused]] const V& x) {
#if defined(__AVX512BF16__) && defined(__AVX512DQ__)
  asm("vcvtneps2bf16 %1, %0" : "=v"(y) : "v"(x));
#endif
}
/// Rounds two vectors to bf16: the first half of y is a, the second is b.
template <class Y, class V>
ISOTOPE_INLINE void round_two_to_bf16([[maybe_unused]] Y& y, [[maybe_unused]] const V& a, [[maybe_unused]] const V& b) {
#if defined(__AVX512BF16__) && defined(__AVX512DQ__)
  asm("vcvtne2ps2bf16 %1, %2, %0" : "=v"(y) : "v"(a), "v"(b));
#endif
}
/// Bit i of the mask = whether the f32 x[i] is subnormal.
template <class V> ISOTOPE_INLINE void find_subnormal_lanes([[maybe_unused]] std::uint16_t& mask, [[maybe_unused]] const V& x) {
#if defined(__AVX512BF16__) && defined(__AVX512DQ__)
  asm("vfpclassps $32, %1, %0" : "=Yk"(mask) : "v"(x));
#endif
}
/// Whether some bit of x, 64 bytes, is set. Needs AVX-512.
template <class W> ISOTOPE_INLINE bool has_bits([[maybe_unused]] const W& x) {
  std::uint16_t mask = 0;
#if defined(__AVX512F__)
  asm("vptestmd %1, %1, %0" : "=Yk"(mask) : "v"(x));
#endif
  return mask != 0;
}
/// Keeps x, 64 bytes, in a register: compilers would load it again for each use. Needs AVX-512.
template <class V> ISOTOPE_INLINE void hold([[maybe_unused]] V& x) {
#if defined(__AVX512F__)
  asm("" : "+v"(x));
#endif
}
/// least[i] = min(|least[i]|, |x[i]|); where one of them is NaN, the other.
template <class V> ISOTOPE_INLINE void keep_least_magnitude([[maybe_unused]] V& least, [[maybe_unused]] const V& x) {
#if defined(__AVX512BF16__) && defined(__AVX512DQ__)
  asm("vrangeps $10, %1, %0, %0" : "+v"(least) : "v"(x));
#endif
}

// The tile functions need config::has_bf16_tiles: a matrix unit (AMX) with tiles 0 to 7 of 16 rows of 64 bytes.
/// Replaces _tile_loadconfig: that of g++ 12 declares only 8 of the 64 bytes that are read, so the compiler may drop the stores to the others.
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
/// The same for memory that is not to take the place of other lines in L1.
template <int T> ISOTOPE_INLINE void load_tile_once([[maybe_unused]] const void* at, [[maybe_unused]] std::int64_t stride) {
#if defined(__AMX_TILE__) && defined(__AMX_BF16__)
  asm volatile("tileloaddt1 (%0,%1,1), %%tmm%c2" ::"r"(at), "r"(stride), "i"(T) : "memory");
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
/// Needs config::has_byte_tiles.
template <int C, int A, int B> ISOTOPE_INLINE void add_tile_bytes() {
#if defined(__AMX_TILE__) && defined(__AMX_BF16__) && defined(__AMX_INT8__)
  asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(C), "i"(A), "i"(B));
#endif
}

// load_lanes and store_lanes need config::has_lane_masks. v is a vector of f32, or of as many 16-bit numbers. The "m" constraints name a whole vector
// of memory, which is more than the masked instructions read or write.
/// v[i] = x[i] where bit i of the mask is set; the other elements of v keep their values, and the other elements of x are not read.
template <class V, class T>
ISOTOPE_INLINE void load_lanes([[maybe_unused]] V& v, [[maybe_unused]] const T* x, [[maybe_unused]] std::uint16_t mask) {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
  if constexpr (sizeof(v) == 64) asm("vmovups %1, %0%{%2%}" : "+v"(v) : "m"(*(const char(*)[64])(x)), "Yk"(mask));
  else asm("vmovdqu16 %1, %0%{%2%}" : "+v"(v) : "m"(*(const char(*)[32])(x)), "Yk"(mask));
#endif
}
/// y[i] = v[i] where bit i of the mask is set; the other elements of y are not written.
template <class V, class T>
ISOTOPE_INLINE void store_lanes([[maybe_unused]] T* y, [[maybe_unused]] const V& v, [[maybe_unused]] std::uint16_t mask) {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
  if constexpr (sizeof(v) == 64) asm("vmovups %1, %0%{%2%}" : "+m"(*(char(*)[64])(y)) : "v"(v), "Yk"(mask));
  else asm("vmovdqu16 %1, %0%{%2%}" : "+m"(*(char(*)[32])(y)) : "v"(v), "Yk"(mask));
#endif
}

/// y[i] = x[i], 16-bit integers zero-extended to 32 bits. Needs config::has_wide_halves. x is half a vector. From plain code, g++ 12 widens it in two parts.
template <class Y, class H> ISOTOPE_INLINE void widen_halves([[maybe_unused]] Y& y, [[maybe_unused]] const H& x) {
#if defined(__AVX2__)
  asm("vpmovzxwd %1, %0" : "=v"(y) : "vm"(x));
#endif
}
/// y[i] = x[i], f16 numbers converted to f32, subnormal ones exactly in every mode of the thread. Needs config::has_half_conversion. x is half a vector.
template <class Y, class H> ISOTOPE_INLINE void convert_halves([[maybe_unused]] Y& y, [[maybe_unused]] const H& x) {
#if defined(__AVX512F__) || defined(__F16C__)
  asm("vcvtph2ps %1, %0" : "=v"(y) : "vm"(x));
#endif
}
/// Has a vector of 64 bytes in a register, so that the compiler does not load parts of it by themselves.
template <class V> ISOTOPE_INLINE void hold_lanes([[maybe_unused]] V& v) {
#if defined(__AVX512F__)
  asm("" : "+v"(v));
#endif
}
/// y[i] = x[i], signed bytes extended to 32-bit integers. Needs config::has_lane_tables. x is the address of as many bytes as y has elements.
template <class Y> ISOTOPE_INLINE void widen_bytes([[maybe_unused]] Y& y, [[maybe_unused]] const void* x) {
#if defined(__AVX2__)
  if constexpr (sizeof(y) == 64) asm("vpmovsxbd %1, %0" : "=v"(y) : "m"(*static_cast<const char(*)[16]>(x)));
  else asm("vpmovsxbd %1, %0" : "=v"(y) : "m"(*static_cast<const char(*)[8]>(x)));
#endif
}

// The functions of bytes need config::has_byte_products; vectors have 32 bytes.
/// y[i] = the 32-bit word at x.
template <class W> ISOTOPE_INLINE void broadcast_word([[maybe_unused]] W& y, [[maybe_unused]] const void* x) {
#if defined(__AVX2__)
  asm("vpbroadcastd %1, %0" : "=v"(y) : "m"(*static_cast<const char(*)[4]>(x)));
#endif
}
/// low and high: the bytes of a and b in turn, of the lower and the upper eight bytes of each half of 16.
template <class Y, class X>
ISOTOPE_INLINE void interleave_bytes([[maybe_unused]] Y& low, [[maybe_unused]] Y& high, [[maybe_unused]] const X& a,
                                     [[maybe_unused]] const X& b) {
#if defined(__AVX2__)
  asm("vpunpcklbw %2, %1, %0" : "=v"(low) : "v"(a), "v"(b));
  asm("vpunpckhbw %2, %1, %0" : "=v"(high) : "v"(a), "v"(b));
#endif
}
/// The same for pairs of bytes.
template <class Y, class X>
ISOTOPE_INLINE void interleave_pairs([[maybe_unused]] Y& low, [[maybe_unused]] Y& high, [[maybe_unused]] const X& a,
                                     [[maybe_unused]] const X& b) {
#if defined(__AVX2__)
  asm("vpunpcklwd %2, %1, %0" : "=v"(low) : "v"(a), "v"(b));
  asm("vpunpckhwd %2, %1, %0" : "=v"(high) : "v"(a), "v"(b));
#endif
}
/// y[i] = |x[i]|, unsigned bytes.
template <class W> ISOTOPE_INLINE void magnitudes_of_bytes([[maybe_unused]] W& y, [[maybe_unused]] const W& x) {
#if defined(__AVX2__)
  asm("vpabsb %1, %0" : "=v"(y) : "v"(x));
#endif
}
/// y[i] = x[i], -x[i] where the byte `of` is negative, 0 where it is 0.
template <class W>
ISOTOPE_INLINE void give_signs_of_bytes([[maybe_unused]] W& y, [[maybe_unused]] const W& x, [[maybe_unused]] const W& of) {
#if defined(__AVX2__)
  asm("vpsignb %2, %1, %0" : "=x"(y) : "x"(x), "x"(of));
#endif
}
/// sum[i] += the products of the four bytes of the words a[i], unsigned, and b[i], signed. Without has_byte_dots, sums of two products must fit into 16 bits.
template <class W>
ISOTOPE_INLINE void add_products_of_bytes([[maybe_unused]] W& sum, [[maybe_unused]] const W& a, [[maybe_unused]] const W& b) {
#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
  asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
#elif defined(__AVX2__)
  using pairs __attribute__((vector_size(32))) = std::int16_t;
  pairs two;
  W four;
  asm("vpmaddubsw %2, %1, %0" : "=x"(two) : "x"(a), "x"(b));
  asm("vpmaddwd %2, %1, %0" : "=x"(four) : "x"(two), "x"(pairs{} + std::int16_t(1)));
  sum += four;
#endif
}
/// sum[i] += the products of the four bytes of the word a[i], unsigned, and those at x, signed; vectors have 64 bytes. Needs config::has_byte_dots.
template <class W>
ISOTOPE_INLINE void add_products_with_word([[maybe_unused]] W& sum, [[maybe_unused]] const W& a, [[maybe_unused]] const void* x) {
#if defined(__AVX512VNNI__) && defined(__AVX512BW__)
  asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(a), "m"(*static_cast<const char(*)[4]>(x)));
#endif
}
/// Sums of products of unsigned and signed bytes, four to a word: of so few and small ones that 16 bits hold those of each half of a word.
template <class W, class Pairs> class byte_products {
 public:
  ISOTOPE_INLINE void add([[maybe_unused]] const W& a, [[maybe_unused]] const W& b) {
#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
    add_products_of_bytes(words_, a, b);
#elif defined(__AVX2__)
    Pairs two;
    asm("vpmaddubsw %2, %1, %0" : "=x"(two) : "x"(a), "x"(b));
    pairs_ += two;
#endif
  }
  ISOTOPE_INLINE void sum(W& r) const {
#if !defined(__AVX512VNNI__) && defined(__AVX2__)
    asm("vpmaddwd %2, %1, %0" : "=x"(r) : "x"(pairs_), "x"(Pairs{} + std::int16_t(1)));
#else
    r = words_;
#endif
  }

 private:
  W words_{};
  Pairs pairs_{};
};
/// y = 2^k y for integral k, vectors of f32, rounded once. Needs config::has_scaled_lanes.
template <class V> ISOTOPE_INLINE void scale_lanes([[maybe_unused]] V& y, [[maybe_unused]] const V& k) {
#if defined(__AVX512F__)
  asm("vscalefps %1, %0, %0" : "+v"(y) : "v"(k));
#endif
}
/// y[i] = table[places[i]], where the table is one vector and the low bits of each 32-bit word of `places` are the index. Needs config::has_lane_tables.
template <class V, class W> ISOTOPE_INLINE void look_up_lanes([[maybe_unused]] V& y, [[maybe_unused]] W table, [[maybe_unused]] W places) {
#if defined(__AVX2__)
  asm("vpermd %2, %1, %0" : "=v"(y) : "v"(places), "vm"(table));
#endif
}
// look_up_pairs and take_fraction need config::has_pair_tables.
/// y[i] = the element of y and `more`, one behind the other, whose index are the low bits of places[i]; vectors have 64 bytes.
template <class V, class W>
ISOTOPE_INLINE void look_up_pairs([[maybe_unused]] V& y, [[maybe_unused]] const W& places, [[maybe_unused]] const V& more) {
#if defined(__AVX512F__)
  asm("vpermt2ps %2, %1, %0" : "+v"(y) : "v"(places), "vm"(more));
#endif
}
/// y = x - floor(x) of vectors of f32, 0 for infinities.
template <class V> ISOTOPE_INLINE void take_fraction([[maybe_unused]] V& y, [[maybe_unused]] const V& x) {
#if defined(__AVX512DQ__)
  asm("vreduceps $9, %1, %0" : "=v"(y) : "v"(x));
#endif
}
/// y = a < b ? a : b of vectors of f32, so b if either is NaN. Needs config::has_ordered_lanes.
template <class V> ISOTOPE_INLINE void take_smaller([[maybe_unused]] V& y, [[maybe_unused]] const V& a, [[maybe_unused]] const V& b) {
#if defined(__AVX__)
  asm("vminps %2, %1, %0" : "=v"(y) : "v"(a), "v"(b));
#endif
}
/// y = a > b ? a : b of vectors of f32, so b if either is NaN. Needs config::has_ordered_lanes.
template <class V> ISOTOPE_INLINE void take_larger([[maybe_unused]] V& y, [[maybe_unused]] const V& a, [[maybe_unused]] const V& b) {
#if defined(__AVX__)
  asm("vmaxps %2, %1, %0" : "=v"(y) : "v"(a), "v"(b));
#endif
}

// stream_lanes and fence_streams need config::has_streams.
/// Stores v with a non-temporal store, which bypasses the caches; y must be aligned to the size of v.
template <class T, class V> ISOTOPE_INLINE void stream_lanes([[maybe_unused]] T* y, [[maybe_unused]] const V& v) {
#if defined(__AVX__)
  asm volatile("vmovntps %1, %0" : "=m"(*(char(*)[sizeof(v)])(y)) : "v"(v));
#endif
}
/// Orders non-temporal stores before it ahead of all stores after it.
ISOTOPE_INLINE void fence_streams() {
#if defined(__AVX__)
  asm volatile("sfence" ::: "memory");
#endif
}

}  // namespace isa
}  // namespace arch
}  // namespace isotope::cpu
