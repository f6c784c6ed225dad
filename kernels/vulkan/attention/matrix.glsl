// What the shaders of attention on matrix units share. Every subgroup owns strips of M rows (queries in the forward pass and for dq, keys for dk and
// dv) and walks tiles of BC rows of the other side, which the whole workgroup loads into shared memory, one vector per read. Which invocation holds
// which element of a matrix depends on the driver: so values of one row or column are loaded as matrices with stride 0, and the result of one gemm
// enters another through the subgroup's own strip of shared memory.
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_shader_subgroup_basic : require
#ifdef BFLOAT16
#extension GL_EXT_bfloat16 : require
#define E bfloat16_t
#define UNROLL [[unroll]]  // constant indices keep matrices in registers
#else
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#define E float16_t
#define UNROLL  // f16 serves tests on processors, whose compilers take a minute for unrolled code
#endif

layout(constant_id = 8) const uint BC = 64;      // rows of a tile, at least 2 M
layout(constant_id = 9) const uint M = 16;       // side of all matrices
layout(constant_id = 10) const uint STRIPS = 1;  // strips per subgroup
layout(constant_id = 11) const bool BIASED = false;  // something is added to the scores of a key: a mask, or the marking of keys behind the last one

const uint SUBGROUPS = WG / SUBGROUP;
const uint BR = SUBGROUPS * STRIPS * M;  // rows of a workgroup
const uint FD = D / M, FC = BC / M;      // matrices along a row, and along a tile
// Rows in shared memory are counted in vectors of eight elements; one vector of padding keeps eight rows in different banks.
const uint VECTORS = D / 8, PITCH = VECTORS + 1, STRIP_PITCH = BC / 8 + 1, STRIP = M * STRIP_PITCH;
const uint FLOAT_PITCH = M / 4 + 1;      // of an f32 matrix in a strip, in units of 16 bytes
const uint TILE = BC * VECTORS, FETCHES = (TILE + WG - 1) / WG;

#define SUM_MATRIX coopmat<float, gl_ScopeSubgroup, M, M, gl_MatrixUseAccumulator>
#define RESULT_MATRIX coopmat<E, gl_ScopeSubgroup, M, M, gl_MatrixUseAccumulator>
#define LEFT_MATRIX coopmat<E, gl_ScopeSubgroup, M, M, gl_MatrixUseA>
#define RIGHT_MATRIX coopmat<E, gl_ScopeSubgroup, M, M, gl_MatrixUseB>
const int ROWS = gl_CooperativeMatrixLayoutRowMajor, COLUMNS = gl_CooperativeMatrixLayoutColumnMajor;

const float HIDDEN = -1e30;  // the score of a hidden key; finite, because the difference of two infinities is NaN

// All subgroups must reach every fence, whatever they skip between fences: llvmpipe treats any barrier as one of the workgroup.
void subgroup_fence() { controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, gl_StorageSemanticsShared, gl_SemanticsAcquireRelease); }

// Rounds x to the format of E before the driver converts it, because some drivers truncate bf16. Three operations (Veltkamp's splitting), to nearest.
// NaN is kept, magnitudes beyond 2^111 become NaN. For operands of another gemm.
float gemm_operand(float x) {
#ifdef BFLOAT16
  precise const float far = x * 65537.0;
  precise const float rest = x - far;
  precise const float y = far + rest;
  return y;
#else
  return x;
#endif
}
// The same for results: ties to even, infinities are kept.
float result_value(float x) {
#ifdef BFLOAT16
  return bf16_value(bf16_bits(x));
#else
  return x;
#endif
}

// Returns vector c of a row of a tensor, zeros behind the last row.
uvec4 vector(uint64_t base, uint stride, uint row, uint rows, uint c) { return row < rows ? u32x4_ref(base).at[row * (stride / 8u) + c] : uvec4(0u); }

// Fetches a tile into registers, on its way from the tensor to shared memory.
#define FETCH(held, base, stride, first, rows)                                                       \
  UNROLL for (uint i = 0; i < FETCHES; ++i) {                                                    \
    const uint n = gl_LocalInvocationID.x + i * WG;                                                  \
    if (TILE % WG == 0 || n < TILE) held[i] = vector(base, stride, first + n / VECTORS, rows, n % VECTORS); \
  }
#define PUT(tile, held)                                                                              \
  UNROLL for (uint i = 0; i < FETCHES; ++i) {                                                    \
    const uint n = gl_LocalInvocationID.x + i * WG;                                                  \
    if (TILE % WG == 0 || n < TILE) tile[n / VECTORS * PITCH + n % VECTORS] = held[i];               \
  }
// Loads rows `first` to first + M - 1 of a tensor as FD left operands, through the strip at `strip`.
#define LOAD_STRIP(left, strip, base, stride, first, rows)                                           \
  UNROLL for (uint piece = 0; piece < FD; piece += FC) {                                         \
    const uint wide = min(FC, FD - piece) * (M / 8);                                                 \
    for (uint n = gl_SubgroupInvocationID; n < M * wide; n += SUBGROUP)                              \
      strips[strip + n / wide * STRIP_PITCH + n % wide] =                                            \
          vector(base, stride, first + n / wide, rows, piece * (M / 8) + n % wide);                  \
    subgroup_fence();                                                                                \
    UNROLL for (uint f = 0; f < min(FC, FD - piece); ++f)                                        \
      coopMatLoad(left[piece + f], strips, strip + f * (M / 8), STRIP_PITCH, ROWS);                  \
    subgroup_fence();                                                                                \
  }
// Stores FD sums through the strip. Rows for which `SHOWN(row)` is false are stored as zeros.
#define STORE_STRIP(sums, strip, base, stride, first, rows, SHOWN)                                   \
  UNROLL for (uint piece = 0; piece < FD; piece += FC) {                                         \
    const uint wide = min(FC, FD - piece) * (M / 8);                                                 \
    UNROLL for (uint f = 0; f < min(FC, FD - piece); ++f) {                                      \
      UNROLL for (uint e = 0; e < sums[piece + f].length(); ++e) sums[piece + f][e] = result_value(sums[piece + f][e]); \
      coopMatStore(RESULT_MATRIX(sums[piece + f]), strips, strip + f * (M / 8), STRIP_PITCH, ROWS);  \
    }                                                                                                \
    subgroup_fence();                                                                                \
    for (uint n = gl_SubgroupInvocationID; n < M * wide; n += SUBGROUP) {                            \
      const uint row = n / wide;                                                                     \
      if (first + row < rows)                                                                        \
        u32x4_ref(base).at[(first + row) * (stride / 8u) + piece * (M / 8) + n % wide] =             \
            SHOWN(row) ? strips[strip + row * STRIP_PITCH + n % wide] : uvec4(0u);                   \
    }                                                                                                \
    subgroup_fence();                                                                                \
  }

// Dropout draws its random words in a strip, where the row and column of each element are known; in a matrix they are not.
#ifdef BFLOAT16
const uint ONE = 0x3f80u;
#else
const uint ONE = 0x3c00u;
#endif
uint two_halves(bool low, bool high, uint x) { return (low ? x : 0u) | (high ? x << 16 : 0u); }
// Returns x for the eight neighbouring keys from `key` on that query row `row` keeps, 0 for the others.
uvec4 of_kept(uint row, uint key, uint x) {
  const bvec4 a = kept(row, key / 4), b = kept(row, key / 4 + 1);
  return uvec4(two_halves(a.x, a.y, x), two_halves(a.z, a.w, x), two_halves(b.x, b.y, x), two_halves(b.z, b.w, x));
}

// Column minus row of every element: locates the diagonal.
shared float aside[M * M];
void fill_aside() {
  for (uint i = gl_LocalInvocationID.x; i < M * M; i += WG) aside[i] = float(i % M) - float(i / M);
}
