#pragma once
/// The one place, apart from backend/, that asks which compiler and processor a translation unit is compiled for.
///
/// ISOTOPE_CPU_NAMESPACE   `inline namespace <arch>`: cpu kernels stand in `namespace isotope::cpu { ISOTOPE_CPU_NAMESPACE { ... } }`, so that
///                         objects compiled with different -march may be linked together without sharing an inline function
/// ISOTOPE_CPU_ARCH        the same name as a string, for reports
/// ISOTOPE_IVDEP           before a loop: its iterations touch no element of another iteration (y == x is fine, y == x + 1 is not);
///                         clang checks for itself at run time
/// ISOTOPE_RESTRICT        a pointer that nothing else in the function aliases
/// ISOTOPE_INLINE          inlined even where the compiler's own cost estimate says no
/// ISOTOPE_INLINE_LAMBDA   the same after a lambda's parameters: [](float x) ISOTOPE_INLINE_LAMBDA { ... }
/// ISOTOPE_NOINLINE        a function of its own: keeps register allocation and symbols separate
/// ISOTOPE_SQRT_QUAD       the square roots of a config::float_quad
/// ISOTOPE_FMA_LANES       a b + c of vectors of f32 of config::vector_bytes, rounded once where config::has_fma
/// ISOTOPE_SQRT_LANES      the square roots of such a vector, where native kernels exist
/// ISOTOPE_CONTRACT        on a function: its products and sums may become fused multiply-adds, whatever the flags say, and its
///                         vectors take the widest registers, whatever the processor's tuning prefers
/// ISOTOPE_CONTRACT_HERE   the same for clang, as the function's first statement
/// ISOTOPE_ADD_PAIRS       where config::has_bf16_pairs: sum += the products of the pairs of bf16 in a and b, vectors of 32-bit words
/// ISOTOPE_ROUND_TO_BF16   where config::has_bf16_pairs: y = x rounded to bf16, subnormal numbers to zero
/// ISOTOPE_ROUND_TWO_TO_BF16 the same of two vectors: y = a, then b
/// ISOTOPE_SUBNORMAL_LANES where config::has_bf16_pairs: a bit of the mask is set where x, f32, is subnormal
/// ISOTOPE_LEAST_MAGNITUDE where config::has_bf16_pairs: least = the smaller one of |least| and |x|; of a number and NaN the number
/// ISOTOPE_TILES_...       where config::has_bf16_tiles: the matrix unit, tiles of 16 rows of 64 bytes named 0 to 7
/// ISOTOPE_LOAD_LANES      where config::has_lane_masks: v = the elements of x whose bit of the mask is set, v's own elsewhere; v is a vector of
///                         f32, or of as many numbers of 16 bits; what no bit is set for is not touched
/// ISOTOPE_STORE_LANES     the way back
/// ISOTOPE_LOOK_UP_LANES   where config::has_lane_tables: y = the element of the table, a vector, that the low bits of a place say; vectors of 32-bit words
/// ISOTOPE_SCALE_LANES     where config::has_scaled_lanes: y = 2^k y for whole k, vectors of f32, rounded once
/// ISOTOPE_WIDEN_HALVES    where config::has_wide_halves: y = x of 16 bits as 32, vectors of config::vector_bytes and half of that
/// ISOTOPE_SMALLER_LANES   where config::has_ordered_lanes: y = a < b ? a : b of vectors of f32 of config::vector_bytes: b where one is NaN
/// ISOTOPE_LARGER_LANES    y = a > b ? a : b, likewise
/// ISOTOPE_STREAM_LANES    where config::has_streams: the vector at y, a multiple of its size, = v, past the caches
/// ISOTOPE_STREAM_FENCE    what was streamed before it is seen before what is stored behind it
/// ISOTOPE_PAUSE           tells the processor that this is a spin loop

#include "processor_name.hpp"

#define ISOTOPE_TEXT_(x) #x
#define ISOTOPE_TEXT(x) ISOTOPE_TEXT_(x)
#define ISOTOPE_NAMESPACE_(x) inline namespace x

#define ISOTOPE_CPU_NAMESPACE_(x) ISOTOPE_NAMESPACE_(x)
#define ISOTOPE_CPU_NAMESPACE ISOTOPE_CPU_NAMESPACE_(ISOTOPE_CPU_ARCH_)
#define ISOTOPE_CPU_ARCH ISOTOPE_TEXT(ISOTOPE_CPU_ARCH_)

#if defined(__clang__)
#define ISOTOPE_IVDEP
#define ISOTOPE_CONTRACT __attribute__((min_vector_width(512)))
#define ISOTOPE_CONTRACT_HERE _Pragma("clang fp contract(fast)")
#define ISOTOPE_SQRT_QUAD(v) __builtin_elementwise_sqrt(v)
#define ISOTOPE_SQRT_LANES(v) __builtin_elementwise_sqrt(v)
#define ISOTOPE_FMA_LANES(a, b, c) __builtin_elementwise_fma(a, b, c)
#else
#define ISOTOPE_IVDEP _Pragma("GCC ivdep")
#define ISOTOPE_CONTRACT __attribute__((optimize("fp-contract=fast")))
#define ISOTOPE_CONTRACT_HERE
#if defined(__x86_64__)
#define ISOTOPE_SQRT_QUAD(v) __builtin_ia32_sqrtps(v)
#else
#define ISOTOPE_SQRT_QUAD(v) \
  config::float_quad { __builtin_sqrtf(v[0]), __builtin_sqrtf(v[1]), __builtin_sqrtf(v[2]), __builtin_sqrtf(v[3]) }
#endif
#if defined(__AVX512F__)
#define ISOTOPE_SQRT_LANES(v) __builtin_ia32_sqrtps512_mask(v, v, -1, 4)
#define ISOTOPE_FMA_LANES(a, b, c) __builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4)
#elif defined(__AVX__) && defined(__FMA__)
#define ISOTOPE_SQRT_LANES(v) __builtin_ia32_sqrtps256(v)
#define ISOTOPE_FMA_LANES(a, b, c) __builtin_ia32_vfmaddps256(a, b, c)
#else
#define ISOTOPE_SQRT_LANES(v) (v)
#define ISOTOPE_FMA_LANES(a, b, c) ((a) * (b) + (c))
#endif
#endif
#define ISOTOPE_RESTRICT __restrict__
#define ISOTOPE_INLINE inline __attribute__((always_inline))
#define ISOTOPE_INLINE_LAMBDA __attribute__((always_inline))
#define ISOTOPE_NOINLINE __attribute__((noinline))

#if defined(__AVX512BF16__) && defined(__AVX512DQ__)
#define ISOTOPE_ADD_PAIRS(sum, a, b) asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b))
#define ISOTOPE_ROUND_TO_BF16(y, x) asm("vcvtneps2bf16 %1, %0" : "=v"(y) : "v"(x))
#define ISOTOPE_ROUND_TWO_TO_BF16(y, a, b) asm("vcvtne2ps2bf16 %1, %2, %0" : "=v"(y) : "v"(a), "v"(b))
#define ISOTOPE_SUBNORMAL_LANES(mask, x) asm("vfpclassps $32, %1, %0" : "=Yk"(mask) : "v"(x))
#define ISOTOPE_LEAST_MAGNITUDE(least, x) asm("vrangeps $10, %1, %0, %0" : "+v"(least) : "v"(x))
#else
#define ISOTOPE_ADD_PAIRS(sum, a, b) (static_cast<void>(sum), static_cast<void>(a), static_cast<void>(b))
#define ISOTOPE_ROUND_TO_BF16(y, x) (static_cast<void>(y), static_cast<void>(x))
#define ISOTOPE_ROUND_TWO_TO_BF16(y, a, b) (static_cast<void>(y), static_cast<void>(a), static_cast<void>(b))
#define ISOTOPE_SUBNORMAL_LANES(mask, x) (static_cast<void>(mask), static_cast<void>(x))
#define ISOTOPE_LEAST_MAGNITUDE(least, x) (static_cast<void>(least), static_cast<void>(x))
#endif

// g++ 12's own _tile_loadconfig declares 8 of the 64 bytes that are read, so that the stores to the rest may be dropped.
#if defined(__AMX_TILE__) && defined(__AMX_BF16__)
#define ISOTOPE_TILES_CONFIGURE(sizes) asm volatile("ldtilecfg %0" ::"m"(sizes))
#define ISOTOPE_TILES_RELEASE() asm volatile("tilerelease")
#define ISOTOPE_TILES_ZERO(t) asm volatile("tilezero %%tmm%c0" ::"i"(t))
#define ISOTOPE_TILES_LOAD(t, at, stride) asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(at), "r"(stride), "i"(t) : "memory")
#define ISOTOPE_TILES_STORE(t, at, stride) asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(at), "r"(stride), "i"(t) : "memory")
#define ISOTOPE_TILES_ADD_PAIRS(c, a, b) asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(c), "i"(a), "i"(b))
#else
#define ISOTOPE_TILES_CONFIGURE(sizes) static_cast<void>(sizes)
#define ISOTOPE_TILES_RELEASE() static_cast<void>(0)
#define ISOTOPE_TILES_ZERO(t) static_cast<void>(t)
#define ISOTOPE_TILES_LOAD(t, at, stride) (static_cast<void>(t), static_cast<void>(at), static_cast<void>(stride))
#define ISOTOPE_TILES_STORE(t, at, stride) (static_cast<void>(t), static_cast<void>(at), static_cast<void>(stride))
#define ISOTOPE_TILES_ADD_PAIRS(c, a, b) (static_cast<void>(c), static_cast<void>(a), static_cast<void>(b))
#endif

#if defined(__AVX512BW__) && defined(__AVX512VL__)
// "+m" of whole vectors: the compiler is told of more than is read or written
#define ISOTOPE_LOAD_LANES(v, x, mask)                                                                               \
  do {                                                                                                               \
    if constexpr (sizeof(v) == 64) asm("vmovups %1, %0%{%2%}" : "+v"(v) : "m"(*(const char(*)[64])(x)), "Yk"(mask)); \
    else asm("vmovdqu16 %1, %0%{%2%}" : "+v"(v) : "m"(*(const char(*)[32])(x)), "Yk"(mask));                         \
  } while (false)
#define ISOTOPE_STORE_LANES(y, v, mask)                                                                        \
  do {                                                                                                         \
    if constexpr (sizeof(v) == 64) asm("vmovups %1, %0%{%2%}" : "+m"(*(char(*)[64])(y)) : "v"(v), "Yk"(mask)); \
    else asm("vmovdqu16 %1, %0%{%2%}" : "+m"(*(char(*)[32])(y)) : "v"(v), "Yk"(mask));                         \
  } while (false)
#else
#define ISOTOPE_LOAD_LANES(v, x, mask) (static_cast<void>(v), static_cast<void>(x), static_cast<void>(mask))
#define ISOTOPE_STORE_LANES(y, v, mask) (static_cast<void>(y), static_cast<void>(v), static_cast<void>(mask))
#endif
#if defined(__AVX512F__)
// g++ 12 widens one half and then the other.
#define ISOTOPE_WIDEN_HALVES(y, x) asm("vpmovzxwd %1, %0" : "=v"(y) : "vm"(x))
#define ISOTOPE_SCALE_LANES(y, k) asm("vscalefps %1, %0, %0" : "+v"(y) : "v"(k))
#else
#define ISOTOPE_WIDEN_HALVES(y, x) (static_cast<void>(y), static_cast<void>(x))
#define ISOTOPE_SCALE_LANES(y, k) (static_cast<void>(y), static_cast<void>(k))
#endif

#if defined(__AVX2__)
#define ISOTOPE_LOOK_UP_LANES(y, table, places) asm("vpermd %2, %1, %0" : "=v"(y) : "v"(places), "vm"(table))
#else
#define ISOTOPE_LOOK_UP_LANES(y, table, places) (static_cast<void>(y), static_cast<void>(table), static_cast<void>(places))
#endif

#if defined(__AVX__)
#define ISOTOPE_SMALLER_LANES(y, a, b) asm("vminps %2, %1, %0" : "=v"(y) : "v"(a), "v"(b))
#define ISOTOPE_LARGER_LANES(y, a, b) asm("vmaxps %2, %1, %0" : "=v"(y) : "v"(a), "v"(b))
#else
#define ISOTOPE_SMALLER_LANES(y, a, b) (static_cast<void>(y), static_cast<void>(a), static_cast<void>(b))
#define ISOTOPE_LARGER_LANES(y, a, b) (static_cast<void>(y), static_cast<void>(a), static_cast<void>(b))
#endif

#if defined(__AVX__)
#define ISOTOPE_STREAM_LANES(y, v) asm volatile("vmovntps %1, %0" : "=m"(*(char(*)[sizeof(v)])(y)) : "v"(v))
#define ISOTOPE_STREAM_FENCE() asm volatile("sfence" ::: "memory")
#else
#define ISOTOPE_STREAM_LANES(y, v) (static_cast<void>(y), static_cast<void>(v))
#define ISOTOPE_STREAM_FENCE() static_cast<void>(0)
#endif

#if defined(__x86_64__)
#define ISOTOPE_PAUSE() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define ISOTOPE_PAUSE() asm volatile("yield" ::: "memory")
#else
#define ISOTOPE_PAUSE() static_cast<void>(0)
#endif

namespace isotope::config {

/// Whether a fused multiply-add is one instruction: only then do kernels ask for it, since it is a library call elsewhere.
#if defined(__FMA__) || defined(__aarch64__)
inline constexpr bool has_fma = true;
#else
inline constexpr bool has_fma = false;
#endif

/// Whether one instruction adds the products of pairs of bf16 to an f32: fma(a0, b0, fma(a1, b1, sum)), subnormal operands and results being zero.
#if defined(__AVX512BF16__) && defined(__AVX512DQ__)
inline constexpr bool has_bf16_pairs = true;
#else
inline constexpr bool has_bf16_pairs = false;
#endif

/// Whether there is a matrix unit (AMX) that adds products of tiles of pairs of bf16 to tiles of f32. The system may still refuse it:
/// backend/cpu/tile_permission.hpp.
#if defined(__AMX_TILE__) && defined(__AMX_BF16__)
inline constexpr bool has_bf16_tiles = true;
#else
inline constexpr bool has_bf16_tiles = false;
#endif

/// Whether a vector of f32, or of as many numbers of 16 bits, is loaded and stored under a mask, whose other elements are not touched.
#if defined(__AVX512BW__) && defined(__AVX512VL__)
inline constexpr bool has_lane_masks = true;
#else
inline constexpr bool has_lane_masks = false;
#endif

/// Whether one instruction widens numbers of 16 bits to a whole vector.
#if defined(__AVX512F__)
inline constexpr bool has_wide_halves = true;
#else
inline constexpr bool has_wide_halves = false;
#endif

/// Whether one instruction takes the smaller of two numbers, where compilers make two of the choice.
#if defined(__AVX__)
inline constexpr bool has_ordered_lanes = true;
#else
inline constexpr bool has_ordered_lanes = false;
#endif

/// Whether one instruction looks a vector's elements up in another one.
#if defined(__AVX2__)
inline constexpr bool has_lane_tables = true;
#else
inline constexpr bool has_lane_tables = false;
#endif

/// Whether one instruction multiplies by powers of two.
#if defined(__AVX512F__)
inline constexpr bool has_scaled_lanes = true;
#else
inline constexpr bool has_scaled_lanes = false;
#endif

/// Whether a vector may be stored past the caches.
#if defined(__AVX__)
inline constexpr bool has_streams = true;
#else
inline constexpr bool has_streams = false;
#endif

/// Whether the compiler may reassociate arithmetic and assume that no NaN exists; the kernels cannot work so.
#if defined(__FAST_MATH__)
inline constexpr bool fast_math = true;
#else
inline constexpr bool fast_math = false;
#endif

/// The widest vector that the compiler was told of.
#if defined(__AVX512F__)
inline constexpr int vector_bytes = 64;
#elif defined(__AVX__)
inline constexpr int vector_bytes = 32;
#else
inline constexpr int vector_bytes = 16;
#endif

/// How many of them there are: what a kernel can keep at hand.
#if defined(__AVX512F__) || defined(__aarch64__)
inline constexpr int vector_registers = 32;
#else
inline constexpr int vector_registers = 16;
#endif

using float_quad __attribute__((vector_size(16))) = float;

}  // namespace isotope::config
