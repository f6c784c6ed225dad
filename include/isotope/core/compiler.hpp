#pragma once
/// The one place, apart from backend/, that asks which compiler and processor a translation unit is compiled for.
///
/// ISOTOPE_CPU_NAMESPACE   `inline namespace <arch>`: cpu kernels are declared in `namespace isotope::cpu { ISOTOPE_CPU_NAMESPACE { ... } }`, so that
///                         objects compiled with different -march may be linked together without sharing an inline function.
///                         Kernels write the same in one line: `namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable { ... }`
/// ISOTOPE_CPU_ARCH        the same name as a string, for reports
/// ISOTOPE_IVDEP           before a loop: its iterations are independent of each other (y == x is fine, y == x + 1 is not);
///                         empty for clang, which adds its own run-time check
/// ISOTOPE_RESTRICT        a pointer that no other pointer in the function aliases
/// ISOTOPE_INLINE          always inlined, regardless of the compiler's cost estimate
/// ISOTOPE_INLINE_LAMBDA   the same after a lambda's parameters: [](float x) ISOTOPE_INLINE_LAMBDA { ... }
/// ISOTOPE_NOINLINE        never inlined: keeps register allocation and symbols separate
/// ISOTOPE_CONTRACT        on a function: its products and sums may become fused multiply-adds, regardless of the flags, and its
///                         vectors use the widest registers, regardless of the processor's tuning
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

/// Whether a fused multiply-add is one instruction. Kernels use it only then, since elsewhere it is a library call.
#if defined(__FMA__) || defined(__aarch64__)
inline constexpr bool has_fma = true;
#else
inline constexpr bool has_fma = false;
#endif

/// Whether one instruction adds the products of pairs of bf16 to an f32: fma(a0, b0, fma(a1, b1, sum)), where subnormal operands and results become zero.
#if defined(__AVX512BF16__) && defined(__AVX512DQ__)
inline constexpr bool has_bf16_pairs = true;
#else
inline constexpr bool has_bf16_pairs = false;
#endif

/// Whether the compiler may use the matrix unit (AMX), which multiplies tiles of bf16 pairs and adds to tiles of f32. The system may still refuse it: see
/// backend/cpu/tile_permission.hpp.
#if defined(__AMX_TILE__) && defined(__AMX_BF16__)
inline constexpr bool has_bf16_tiles = true;
#else
inline constexpr bool has_bf16_tiles = false;
#endif

/// Whether the matrix unit also multiplies tiles of signed bytes and adds to tiles of 32-bit integers.
#if defined(__AMX_TILE__) && defined(__AMX_BF16__) && defined(__AMX_INT8__)
inline constexpr bool has_byte_tiles = true;
#else
inline constexpr bool has_byte_tiles = false;
#endif

/// Whether there are masked loads and stores of vectors of f32 and of as many 16-bit numbers.
#if defined(__AVX512BW__) && defined(__AVX512VL__)
inline constexpr bool has_lane_masks = true;
#else
inline constexpr bool has_lane_masks = false;
#endif

/// Whether one instruction widens 16-bit numbers to a whole vector of 32-bit numbers.
#if defined(__AVX2__)
inline constexpr bool has_wide_halves = true;
#else
inline constexpr bool has_wide_halves = false;
#endif

/// Whether one instruction converts f16 to a whole vector of f32.
#if defined(__AVX512F__) || defined(__F16C__)
inline constexpr bool has_half_conversion = true;
#else
inline constexpr bool has_half_conversion = false;
#endif

/// Whether one instruction computes a < b ? a : b, for which compilers generate two.
#if defined(__AVX__)
inline constexpr bool has_ordered_lanes = true;
#else
inline constexpr bool has_ordered_lanes = false;
#endif

/// Whether one instruction permutes the elements of a vector by a vector of indices.
#if defined(__AVX2__)
inline constexpr bool has_lane_tables = true;
#else
inline constexpr bool has_lane_tables = false;
#endif

/// Whether one instruction looks numbers up in two vectors, and one takes fractions.
#if defined(__AVX512F__) && defined(__AVX512DQ__)
inline constexpr bool has_pair_tables = true;
#else
inline constexpr bool has_pair_tables = false;
#endif

/// Whether one instruction multiplies bytes, unsigned by signed, and adds two products.
#if defined(__AVX2__) && defined(__F16C__)
inline constexpr bool has_byte_products = true;
#else
inline constexpr bool has_byte_products = false;
#endif

/// Whether one instruction multiplies and adds four bytes for each word of 64 bytes.
#if defined(__AVX512VNNI__) && defined(__AVX512BW__)
inline constexpr bool has_byte_dots = true;
#else
inline constexpr bool has_byte_dots = false;
#endif

/// Whether one instruction multiplies by 2^k.
#if defined(__AVX512F__)
inline constexpr bool has_scaled_lanes = true;
#else
inline constexpr bool has_scaled_lanes = false;
#endif

/// Whether there are non-temporal stores, which bypass the caches.
#if defined(__AVX__)
inline constexpr bool has_streams = true;
#else
inline constexpr bool has_streams = false;
#endif

/// Whether the compiler may reassociate arithmetic and assume that no NaN exists. The kernels do not work with such flags.
#if defined(__FAST_MATH__)
inline constexpr bool fast_math = true;
#else
inline constexpr bool fast_math = false;
#endif

/// The bytes of the widest vector that the compiler may use.
#if defined(__AVX512F__)
inline constexpr int vector_bytes = 64;
#elif defined(__AVX__)
inline constexpr int vector_bytes = 32;
#else
inline constexpr int vector_bytes = 16;
#endif

/// The number of vector registers.
#if defined(__AVX512F__) || defined(__aarch64__)
inline constexpr int vector_registers = 32;
#else
inline constexpr int vector_registers = 16;
#endif

using float_quad __attribute__((vector_size(16))) = float;

}  // namespace isotope::config
