#pragma once
/// ISOTOPE_CPU_ARCH_: a unique name for the set of instructions that the compiler may use. It consists of the level of the x86-64 psABI, `icelake` for what
/// that processor adds to v4, and the other extensions that the flags enable. Only extensions count that compilers use on their own or that kernels use
/// explicitly, so those for cryptography do not.

#if defined(__x86_64__)
#if defined(__SSE3__) && defined(__SSSE3__) && defined(__SSE4_1__) && defined(__SSE4_2__) && defined(__POPCNT__)
#define ISOTOPE_CPU_HAS_V2_ 1
#else
#define ISOTOPE_CPU_HAS_V2_ 0
#endif
#if ISOTOPE_CPU_HAS_V2_ && defined(__AVX__) && defined(__AVX2__) && defined(__BMI__) && defined(__BMI2__) && defined(__F16C__) && \
    defined(__FMA__) && defined(__LZCNT__) && defined(__MOVBE__)
#define ISOTOPE_CPU_HAS_V3_ 1
#else
#define ISOTOPE_CPU_HAS_V3_ 0
#endif
#if ISOTOPE_CPU_HAS_V3_ && defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512CD__) && defined(__AVX512DQ__) && \
    defined(__AVX512VL__)
#define ISOTOPE_CPU_HAS_V4_ 1
#else
#define ISOTOPE_CPU_HAS_V4_ 0
#endif
#if ISOTOPE_CPU_HAS_V4_ && defined(__AVX512IFMA__) && defined(__AVX512VBMI__) && defined(__AVX512VBMI2__) && defined(__AVX512BITALG__) && \
    defined(__AVX512VPOPCNTDQ__) && defined(__AVX512VNNI__) && defined(__GFNI__)
#define ISOTOPE_CPU_HAS_ICELAKE_ 1
#else
#define ISOTOPE_CPU_HAS_ICELAKE_ 0
#endif

#if ISOTOPE_CPU_HAS_ICELAKE_
#define ISOTOPE_CPU_LEVEL_ x86_64_v4_icelake
#elif ISOTOPE_CPU_HAS_V4_
#define ISOTOPE_CPU_LEVEL_ x86_64_v4
#elif ISOTOPE_CPU_HAS_V3_
#define ISOTOPE_CPU_LEVEL_ x86_64_v3
#elif ISOTOPE_CPU_HAS_V2_
#define ISOTOPE_CPU_LEVEL_ x86_64_v2
#else
#define ISOTOPE_CPU_LEVEL_ x86_64
#endif

#if defined(__SSE3__) && !ISOTOPE_CPU_HAS_V2_
#define ISOTOPE_CPU_SSE3_ _sse3
#else
#define ISOTOPE_CPU_SSE3_
#endif
#if defined(__SSSE3__) && !ISOTOPE_CPU_HAS_V2_
#define ISOTOPE_CPU_SSSE3_ _ssse3
#else
#define ISOTOPE_CPU_SSSE3_
#endif
#if defined(__SSE4_1__) && !ISOTOPE_CPU_HAS_V2_
#define ISOTOPE_CPU_SSE4_1_ _sse41
#else
#define ISOTOPE_CPU_SSE4_1_
#endif
#if defined(__SSE4_2__) && !ISOTOPE_CPU_HAS_V2_
#define ISOTOPE_CPU_SSE4_2_ _sse42
#else
#define ISOTOPE_CPU_SSE4_2_
#endif
#if defined(__POPCNT__) && !ISOTOPE_CPU_HAS_V2_
#define ISOTOPE_CPU_POPCNT_ _popcnt
#else
#define ISOTOPE_CPU_POPCNT_
#endif
#if defined(__AVX__) && !ISOTOPE_CPU_HAS_V3_
#define ISOTOPE_CPU_AVX_ _avx
#else
#define ISOTOPE_CPU_AVX_
#endif
#if defined(__AVX2__) && !ISOTOPE_CPU_HAS_V3_
#define ISOTOPE_CPU_AVX2_ _avx2
#else
#define ISOTOPE_CPU_AVX2_
#endif
#if defined(__BMI__) && !ISOTOPE_CPU_HAS_V3_
#define ISOTOPE_CPU_BMI_ _bmi
#else
#define ISOTOPE_CPU_BMI_
#endif
#if defined(__BMI2__) && !ISOTOPE_CPU_HAS_V3_
#define ISOTOPE_CPU_BMI2_ _bmi2
#else
#define ISOTOPE_CPU_BMI2_
#endif
#if defined(__F16C__) && !ISOTOPE_CPU_HAS_V3_
#define ISOTOPE_CPU_F16C_ _f16c
#else
#define ISOTOPE_CPU_F16C_
#endif
#if defined(__FMA__) && !ISOTOPE_CPU_HAS_V3_
#define ISOTOPE_CPU_FMA_ _fma
#else
#define ISOTOPE_CPU_FMA_
#endif
#if defined(__LZCNT__) && !ISOTOPE_CPU_HAS_V3_
#define ISOTOPE_CPU_LZCNT_ _lzcnt
#else
#define ISOTOPE_CPU_LZCNT_
#endif
#if defined(__MOVBE__) && !ISOTOPE_CPU_HAS_V3_
#define ISOTOPE_CPU_MOVBE_ _movbe
#else
#define ISOTOPE_CPU_MOVBE_
#endif
#if defined(__AVX512F__) && !ISOTOPE_CPU_HAS_V4_
#define ISOTOPE_CPU_AVX512F_ _avx512f
#else
#define ISOTOPE_CPU_AVX512F_
#endif
#if defined(__AVX512BW__) && !ISOTOPE_CPU_HAS_V4_
#define ISOTOPE_CPU_AVX512BW_ _avx512bw
#else
#define ISOTOPE_CPU_AVX512BW_
#endif
#if defined(__AVX512CD__) && !ISOTOPE_CPU_HAS_V4_
#define ISOTOPE_CPU_AVX512CD_ _avx512cd
#else
#define ISOTOPE_CPU_AVX512CD_
#endif
#if defined(__AVX512DQ__) && !ISOTOPE_CPU_HAS_V4_
#define ISOTOPE_CPU_AVX512DQ_ _avx512dq
#else
#define ISOTOPE_CPU_AVX512DQ_
#endif
#if defined(__AVX512VL__) && !ISOTOPE_CPU_HAS_V4_
#define ISOTOPE_CPU_AVX512VL_ _avx512vl
#else
#define ISOTOPE_CPU_AVX512VL_
#endif
#if defined(__AVX512IFMA__) && !ISOTOPE_CPU_HAS_ICELAKE_
#define ISOTOPE_CPU_AVX512IFMA_ _ifma
#else
#define ISOTOPE_CPU_AVX512IFMA_
#endif
#if defined(__AVX512VBMI__) && !ISOTOPE_CPU_HAS_ICELAKE_
#define ISOTOPE_CPU_AVX512VBMI_ _vbmi
#else
#define ISOTOPE_CPU_AVX512VBMI_
#endif
#if defined(__AVX512VBMI2__) && !ISOTOPE_CPU_HAS_ICELAKE_
#define ISOTOPE_CPU_AVX512VBMI2_ _vbmi2
#else
#define ISOTOPE_CPU_AVX512VBMI2_
#endif
#if defined(__AVX512BITALG__) && !ISOTOPE_CPU_HAS_ICELAKE_
#define ISOTOPE_CPU_AVX512BITALG_ _bitalg
#else
#define ISOTOPE_CPU_AVX512BITALG_
#endif
#if defined(__AVX512VPOPCNTDQ__) && !ISOTOPE_CPU_HAS_ICELAKE_
#define ISOTOPE_CPU_AVX512VPOPCNTDQ_ _popcntdq
#else
#define ISOTOPE_CPU_AVX512VPOPCNTDQ_
#endif
#if defined(__AVX512VNNI__) && !ISOTOPE_CPU_HAS_ICELAKE_
#define ISOTOPE_CPU_AVX512VNNI_ _vnni
#else
#define ISOTOPE_CPU_AVX512VNNI_
#endif
#if defined(__GFNI__) && !ISOTOPE_CPU_HAS_ICELAKE_
#define ISOTOPE_CPU_GFNI_ _gfni
#else
#define ISOTOPE_CPU_GFNI_
#endif
#if defined(__AVX512BF16__)
#define ISOTOPE_CPU_AVX512BF16_ _bf16
#else
#define ISOTOPE_CPU_AVX512BF16_
#endif
#if defined(__AVX512FP16__)
#define ISOTOPE_CPU_AVX512FP16_ _fp16
#else
#define ISOTOPE_CPU_AVX512FP16_
#endif
#if defined(__AVXVNNI__)
#define ISOTOPE_CPU_AVXVNNI_ _avxvnni
#else
#define ISOTOPE_CPU_AVXVNNI_
#endif
#if defined(__AVXIFMA__)
#define ISOTOPE_CPU_AVXIFMA_ _avxifma
#else
#define ISOTOPE_CPU_AVXIFMA_
#endif
#if defined(__AMX_TILE__)
#define ISOTOPE_CPU_AMX_TILE_ _tiles
#else
#define ISOTOPE_CPU_AMX_TILE_
#endif
#if defined(__AMX_BF16__)
#define ISOTOPE_CPU_AMX_BF16_ _amx
#else
#define ISOTOPE_CPU_AMX_BF16_
#endif
#if defined(__AMX_INT8__)
#define ISOTOPE_CPU_AMX_INT8_ _int8
#else
#define ISOTOPE_CPU_AMX_INT8_
#endif
#if defined(__SSE4A__)
#define ISOTOPE_CPU_SSE4A_ _sse4a
#else
#define ISOTOPE_CPU_SSE4A_
#endif
#if defined(__FMA4__)
#define ISOTOPE_CPU_FMA4_ _fma4
#else
#define ISOTOPE_CPU_FMA4_
#endif
#if defined(__XOP__)
#define ISOTOPE_CPU_XOP_ _xop
#else
#define ISOTOPE_CPU_XOP_
#endif
#if defined(__TBM__)
#define ISOTOPE_CPU_TBM_ _tbm
#else
#define ISOTOPE_CPU_TBM_
#endif
#if defined(__PCLMUL__)
#define ISOTOPE_CPU_PCLMUL_ _pclmul
#else
#define ISOTOPE_CPU_PCLMUL_
#endif

// Joins seven words, each of which may be empty.
#define ISOTOPE_JOIN_(a, b, c, d, e, f, g) a##b##c##d##e##f##g
#define ISOTOPE_JOIN(...) ISOTOPE_JOIN_(__VA_ARGS__)
#define ISOTOPE_CPU_JOINED_1_                                                                                                            \
  ISOTOPE_JOIN(ISOTOPE_CPU_LEVEL_, ISOTOPE_CPU_SSE3_, ISOTOPE_CPU_SSSE3_, ISOTOPE_CPU_SSE4_1_, ISOTOPE_CPU_SSE4_2_, ISOTOPE_CPU_POPCNT_, \
               ISOTOPE_CPU_AVX_)
#define ISOTOPE_CPU_JOINED_2_                                                                                                      \
  ISOTOPE_JOIN(ISOTOPE_CPU_JOINED_1_, ISOTOPE_CPU_AVX2_, ISOTOPE_CPU_BMI_, ISOTOPE_CPU_BMI2_, ISOTOPE_CPU_F16C_, ISOTOPE_CPU_FMA_, \
               ISOTOPE_CPU_LZCNT_)
#define ISOTOPE_CPU_JOINED_3_                                                                                                 \
  ISOTOPE_JOIN(ISOTOPE_CPU_JOINED_2_, ISOTOPE_CPU_MOVBE_, ISOTOPE_CPU_AVX512F_, ISOTOPE_CPU_AVX512BW_, ISOTOPE_CPU_AVX512CD_, \
               ISOTOPE_CPU_AVX512DQ_, ISOTOPE_CPU_AVX512VL_)
#define ISOTOPE_CPU_JOINED_4_                                                                                     \
  ISOTOPE_JOIN(ISOTOPE_CPU_JOINED_3_, ISOTOPE_CPU_AVX512IFMA_, ISOTOPE_CPU_AVX512VBMI_, ISOTOPE_CPU_AVX512VBMI2_, \
               ISOTOPE_CPU_AVX512BITALG_, ISOTOPE_CPU_AVX512VPOPCNTDQ_, ISOTOPE_CPU_AVX512VNNI_)
#define ISOTOPE_CPU_JOINED_5_                                                                                                    \
  ISOTOPE_JOIN(ISOTOPE_CPU_JOINED_4_, ISOTOPE_CPU_GFNI_, ISOTOPE_CPU_AVX512BF16_, ISOTOPE_CPU_AVX512FP16_, ISOTOPE_CPU_AVXVNNI_, \
               ISOTOPE_CPU_AVXIFMA_, ISOTOPE_CPU_AMX_TILE_)
#define ISOTOPE_CPU_JOINED_6_                                                                                              \
  ISOTOPE_JOIN(ISOTOPE_CPU_JOINED_5_, ISOTOPE_CPU_AMX_BF16_, ISOTOPE_CPU_AMX_INT8_, ISOTOPE_CPU_SSE4A_, ISOTOPE_CPU_FMA4_, \
               ISOTOPE_CPU_XOP_, ISOTOPE_CPU_TBM_)
#define ISOTOPE_CPU_ARCH_ ISOTOPE_JOIN(ISOTOPE_CPU_JOINED_6_, ISOTOPE_CPU_PCLMUL_, , , , , )

#elif defined(__aarch64__)
#if defined(__ARM_FEATURE_SVE2)
#define ISOTOPE_CPU_ARCH_ aarch64_sve2
#elif defined(__ARM_FEATURE_SVE)
#define ISOTOPE_CPU_ARCH_ aarch64_sve
#else
#define ISOTOPE_CPU_ARCH_ aarch64
#endif
#else
#define ISOTOPE_CPU_ARCH_ generic_cpu
#endif
