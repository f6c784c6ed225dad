#pragma once
/// The one place, apart from backend/, that asks which compiler and processor a translation unit is compiled for.
///
/// ISOTOPE_CPU_NAMESPACE   `inline namespace <arch>`: what the cpu backend computes with stands in `namespace isotope::cpu { ISOTOPE_CPU_NAMESPACE
///                         { ... } }`, so that objects compiled with different -march may be linked together without sharing an inline function.
///                         Kernels write the same in one line: `namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable { ... }`
/// ISOTOPE_CPU_ARCH        the same name as a string, for reports
/// ISOTOPE_IVDEP           before a loop: its iterations touch no element of another iteration (y == x is fine, y == x + 1 is not);
///                         clang checks for itself at run time
/// ISOTOPE_RESTRICT        a pointer that nothing else in the function aliases
/// ISOTOPE_INLINE          inlined even where the compiler's own cost estimate says no
/// ISOTOPE_INLINE_LAMBDA   the same after a lambda's parameters: [](float x) ISOTOPE_INLINE_LAMBDA { ... }
/// ISOTOPE_NOINLINE        a function of its own: keeps register allocation and symbols separate
/// ISOTOPE_CONTRACT        on a function: its products and sums may become fused multiply-adds, whatever the flags say, and its
///                         vectors take the widest registers, whatever the processor's tuning prefers
/// ISOTOPE_CONTRACT_HERE   the same for clang, as the function's first statement
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
#else
#define ISOTOPE_IVDEP _Pragma("GCC ivdep")
#define ISOTOPE_CONTRACT __attribute__((optimize("fp-contract=fast")))
#define ISOTOPE_CONTRACT_HERE
#endif
#define ISOTOPE_RESTRICT __restrict__
#define ISOTOPE_INLINE inline __attribute__((always_inline))
#define ISOTOPE_INLINE_LAMBDA __attribute__((always_inline))
#define ISOTOPE_NOINLINE __attribute__((noinline))

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
