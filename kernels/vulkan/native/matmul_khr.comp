#version 460
#extension GL_GOOGLE_include_directive : require
// variant bf16_plain: -DELEMENT=bfloat16_t needs coopmat_bf16
// variant bf16_few: -DELEMENT=bfloat16_t -DBODY -DBODY_MICROS=4 needs coopmat_bf16
// variant bf16_many: -DELEMENT=bfloat16_t -DBODY needs coopmat_bf16
// variant f16_plain: -DELEMENT=float16_t needs coopmat
// variant f16_few: -DELEMENT=float16_t -DBODY -DBODY_MICROS=4 needs coopmat
// variant f16_many: -DELEMENT=float16_t -DBODY needs coopmat
//
// Bound by matrix units and by their reads of shared memory (VK_KHR_cooperative_matrix, subgroup scope). 16-bit operands, f32 sums. A tile is one of
// matmul_khr_tile, with up to 128 sums per invocation. Slabs are 64 long along K, a whole line of 128 bytes, in one stage of shared memory; the next
// slab is in registers while one is multiplied. Slabs keep the memory order (a load by rows or by columns transposes), and lines are padded by 16
// bytes against bank conflicts.
//
// Sums leave through shared memory, a strip of fragments at a time, so that the shader rounds them (drivers truncate) and a fused body sees them in
// f32. 16-bit results without an epilogue leave as octets of a row: on an H200 quads gave 220 instead of 243 TFLOP/s at 32768 x 3072 x 768.
//
// Tried and lost there: two stages (192-223), tiles of 128 x 256 and 256 x 128 (218-225), workgroups that take several tiles (1-5 % less, but 4 %
// more for weights in lines that start anywhere), sums rounded before they reach shared memory (1 % less), other groups of tiles than 8 rows (level),
// matrices of workgroup scope of VK_NV_cooperative_matrix2 (37-50). Loading fragments a step early gains 2-3 % for 192 x 128 tiles, and where K has
// odd lines.
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : enable
#extension GL_EXT_bfloat16 : enable
#include "access.glsl"
#include "gemm/launch.glsl"

layout(constant_id = 19) const uint TILE_M = 128;
layout(constant_id = 20) const uint TILE_N = 128;
layout(constant_id = 21) const uint SLAB = 64;     // along K
layout(constant_id = 22) const uint TEAMS_M = 4;   // subgroups along M
layout(constant_id = 23) const uint TEAMS_N = 2;
layout(constant_id = 24) const uint UNIT_M = 16;   // size of the device's matrices
layout(constant_id = 25) const uint UNIT_N = 16;
layout(constant_id = 26) const uint UNIT_K = 16;
layout(constant_id = 27) const bool A_SKEWED = false;  // some lines of A do not start at multiples of 16 bytes; implies EDGE
layout(constant_id = 28) const bool B_SKEWED = false;
layout(constant_id = 29) const uint STEP = 64;  // how much of a slab is straight code: less compiles faster
layout(constant_id = 30) const bool EARLY = false;  // fragments are loaded one step before their use
layout(constant_id = 31) const uint LEAVE = 0;      // how sums leave
#define BODY_FIRST_ID 32
#include "gemm/epilogue.glsl"

layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer octets_ref { uvec4 at[]; };  // eight elements each

const uint THREADS = TEAMS_M * TEAMS_N * SUBGROUP;
// How sums leave: as quads through finish(); or, for a 16-bit gemm without epilogue, as octets of aligned rows or pairs of rows that start anywhere.
const uint QUADS = 0, OCTETS = 1, PAIRS = 2;
const uint PAD = 1;  // in octets
const uint A_LINES = A_CROSS ? SLAB : TILE_M, A_ROW = (A_CROSS ? TILE_M : SLAB) / 8;  // octets in a line
const uint B_LINES = B_CROSS ? SLAB : TILE_N, B_ROW = (B_CROSS ? TILE_N : SLAB) / 8;
const uint A_STRIDE = A_ROW + PAD, B_STRIDE = B_ROW + PAD;
// Lines that move at a time: by all invocations, or, where a line is three times a power of two, by three quarters of them.
const uint A_TURN = THREADS % A_ROW == 0 ? THREADS / A_ROW : 3 * THREADS / (4 * A_ROW);
const uint B_TURN = THREADS % B_ROW == 0 ? THREADS / B_ROW : 3 * THREADS / (4 * B_ROW);
const uint A_MOVERS = A_TURN * A_ROW, B_MOVERS = B_TURN * B_ROW;
const uint A_TURNS = A_LINES / A_TURN, B_TURNS = B_LINES / B_TURN;
const uint B_AT = A_LINES * A_STRIDE;
const uint FRAGMENTS_M = TILE_M / TEAMS_M / UNIT_M, FRAGMENTS_N = TILE_N / TEAMS_N / UNIT_N;
const uint STRIP_QUADS = TILE_N / TEAMS_N / 4, STRIP_STRIDE = STRIP_QUADS + 1;
const uint STRIPS = TEAMS_M * TEAMS_N * UNIT_M * STRIP_STRIDE, SLABS = B_AT + B_LINES * B_STRIDE;
shared uvec4 stage[SLABS > STRIPS ? SLABS : STRIPS];

uvec4 next_a[A_TURNS], next_b[B_TURNS];
uvec4 more_a[A_SKEWED ? A_TURNS : 1], more_b[B_SKEWED ? B_TURNS : 1];  // the octets that follow

// Shifts x down by `skew` elements, with elements of `more` on top.
uvec4 skewed(uvec4 x, uvec4 more, uint skew) {
  uint w[8] = {x.x, x.y, x.z, x.w, more.x, more.y, more.z, more.w};
  if ((skew & 4) != 0)
    [[unroll]] for (uint i = 0; i < 6; ++i) w[i] = w[min(i + 2, 7)];
  if ((skew & 2) != 0)
    [[unroll]] for (uint i = 0; i < 5; ++i) w[i] = w[i + 1];
  if ((skew & 1) != 0)
    [[unroll]] for (uint i = 0; i < 4; ++i) w[i] = (w[i] >> 16) | (w[i + 1] << 16);
  return uvec4(w[0], w[1], w[2], w[3]);
}
// Returns the first n elements of x, then zeros.
uvec4 head(uvec4 x, int n) {
  [[unroll]] for (int i = 0; i < 4; ++i) x[i] = n >= 2 * i + 2 ? x[i] : n == 2 * i + 1 ? x[i] & 0xffffu : 0u;
  return x;
}

// An operand: the 16-byte block that holds its first element, which is element `skew` of that block, and the `last` block that it reaches into.
struct operand {
  uint64_t blocks;
  uint skew, last;
};
operand operand_at(uint64_t base, uint offset, uint lines, uint stride, uint length) {
  const uint64_t at = base + 2 * uint64_t(offset);
  const uint skew = uint(at) % 16 / 2;
  return operand(at - 2 * skew, skew, ((lines - 1) * stride + length - 1 + skew) / 8);
}

// Packs two elements as they lie in memory.
uint pair_bits(float low, float high) {
  const float x = ALPHA * low, z = ALPHA * high;
  return Y_TYPE == BF16 ? bf16_bits(x) | (bf16_bits(z) << 16) : f16_bits(x) | (f16_bits(z) << 16);
}
// Returns a quad of the strip at `strip`: (UNIT_M, 4 STRIP_QUADS) f32.
vec4 quad_at(uint strip, uint row, uint quad) { return uintBitsToFloat(stage[strip + row * STRIP_STRIDE + quad]); }
float sum_at(uint strip, uint row, uint col) { return uintBitsToFloat(stage[strip + row * STRIP_STRIDE + col / 4][col % 4]); }
void store_octet(uint strip, uint row, uint octet, uint at) {
  const vec4 x = quad_at(strip, row, 2 * octet), z = quad_at(strip, row, 2 * octet + 1);
  u32x4_ref(y).at[at / 8] = uvec4(pair_bits(x.x, x.y), pair_bits(x.z, x.w), pair_bits(z.x, z.y), pair_bits(z.z, z.w));
}
// Stores the first `valid` columns of a row by the whole subgroup; `at` is the index of column 0 in y. Pairs start at even elements of y.
void store_pairs(uint strip, uint row, uint at, uint valid) {
  const uint odd = at % 2;
  [[unroll]] for (uint i = 0; i < 4 * STRIP_QUADS; i += 2 * SUBGROUP) {
    const uint col = i + 2 * gl_SubgroupInvocationID + odd;
    if (col + 1 < valid) u32_ref(y).at[(at + col) / 2] = pair_bits(sum_at(strip, row, col), sum_at(strip, row, col + 1));
    else if (col < valid) u16_ref(y).at[at + col] = uint16_t(pair_bits(sum_at(strip, row, col), 0.0));
    if (col == 1 && odd == 1) u16_ref(y).at[at] = uint16_t(pair_bits(sum_at(strip, row, 0), 0.0));
  }
}

#define MATRIX_A coopmat<ELEMENT, gl_ScopeSubgroup, UNIT_M, UNIT_K, gl_MatrixUseA>
#define MATRIX_B coopmat<ELEMENT, gl_ScopeSubgroup, UNIT_K, UNIT_N, gl_MatrixUseB>

void main() {
  const uint down = (M + TILE_M - 1) / TILE_M, across = (N + TILE_N - 1) / TILE_N;
  if (group_index() >= down * across) return;
  const uvec2 origin = tile_at(group_index(), down, across) * uvec2(TILE_M, TILE_N);
  const uint batch = batch_index(), begin = part_index() * depth, end = min(begin + depth, K);
  const uint a_stride = A_SKEWED ? a_line : a_line & ~7u, b_stride = B_SKEWED ? b_line : b_line & ~7u;
  const operand left = operand_at(a, batch_offset(batch, a_outer, a_inner), A_CROSS ? K : M, a_line, A_CROSS ? M : K);
  const operand right = operand_at(b, batch_offset(batch, b_outer, b_inner), B_CROSS ? K : N, b_line, B_CROSS ? N : K);

  coopmat<float, gl_ScopeSubgroup, UNIT_M, UNIT_N, gl_MatrixUseAccumulator> sums[FRAGMENTS_M][FRAGMENTS_N];
  [[unroll]] for (uint i = 0; i < FRAGMENTS_M; ++i)
    [[unroll]] for (uint j = 0; j < FRAGMENTS_N; ++j)
      sums[i][j] = coopmat<float, gl_ScopeSubgroup, UNIT_M, UNIT_N, gl_MatrixUseAccumulator>(0.0);

  // This invocation moves octet `col` of lines `line`, `line` + TURN, ...; its elements start at `from`.
  const uint t = gl_LocalInvocationIndex;
  const uint a_top = t / A_ROW, a_col = t % A_ROW, b_top = t / B_ROW, b_col = t % B_ROW;
  uint from_a = (A_CROSS ? (begin + a_top) * a_stride + origin.x : (origin.x + a_top) * a_stride + begin) + 8 * a_col;
  uint from_b = (B_CROSS ? (begin + b_top) * b_stride + origin.y : (origin.y + b_top) * b_stride + begin) + 8 * b_col;
  from_a = A_SKEWED ? from_a + left.skew : from_a / 8;  // aligned lines: in octets
  from_b = B_SKEWED ? from_b + right.skew : from_b / 8;
  const uint step_a = (A_CROSS ? SLAB * a_stride : SLAB) / (A_SKEWED ? 1 : 8), step_b = (B_CROSS ? SLAB * b_stride : SLAB) / (B_SKEWED ? 1 : 8);
  // Slabs are multiples of 8 elements apart, so an invocation has the same skews in all of them.
  const uint skew_a = from_a % 8, skew_b = from_b % 8;

#define TAKE(x, X, operand, next, more)                                                                                         \
  if (X##_MOVERS == THREADS || t < X##_MOVERS)                                                                                  \
    [[unroll]] for (uint i = 0; i < X##_TURNS; ++i) {                                                                           \
      const uint block = X##_SKEWED ? (from_##x + i * X##_TURN * x##_stride) / 8 : from_##x + i * X##_TURN * (x##_stride / 8);  \
      next[i] = octets_ref(operand.blocks).at[EDGE ? min(block, operand.last) : block];                                         \
      if (X##_SKEWED) more[i] = octets_ref(operand.blocks).at[min(block + 1, operand.last)];                                    \
    }                                                                                                                           \
  from_##x += step_##x;
#define PUT(x, X, base, next, more)                                                                                             \
  if (X##_MOVERS == THREADS || t < X##_MOVERS)                                                                                  \
    [[unroll]] for (uint i = 0; i < X##_TURNS; ++i) {                                                                           \
      uvec4 octet = next[i];                                                                                                    \
      if (X##_SKEWED) octet = skewed(octet, more[i], (skew_##x + i * X##_TURN * (x##_stride % 8)) % 8);                         \
      if (EDGE && k + SLAB > end)                                                                                               \
        octet = head(octet, X##_CROSS ? (k + x##_top + i * X##_TURN < end ? 8 : 0) : int(end - k) - int(8 * x##_col));          \
      stage[base + (x##_top + i * X##_TURN) * X##_STRIDE + x##_col] = octet;                                                    \
    }
// Loads fragments at position s of the slab: all of this subgroup's rows, or column j.
#define LOAD_ROWS(into, s)                                                                                             \
  [[unroll]] for (uint i = 0; i < FRAGMENTS_M; ++i) {                                                                  \
    const uint m = (team_m * FRAGMENTS_M + i) * UNIT_M;                                                                \
    if (A_CROSS) coopMatLoad(into[i], stage, (s) * A_STRIDE + m / 8, A_STRIDE, gl_CooperativeMatrixLayoutColumnMajor); \
    else coopMatLoad(into[i], stage, m * A_STRIDE + (s) / 8, A_STRIDE, gl_CooperativeMatrixLayoutRowMajor);            \
  }
#define LOAD_COLS(into, s, j)                                                                                               \
  {                                                                                                                         \
    const uint n = (team_n * FRAGMENTS_N + j) * UNIT_N;                                                                     \
    if (B_CROSS) coopMatLoad(into, stage, B_AT + (s) * B_STRIDE + n / 8, B_STRIDE, gl_CooperativeMatrixLayoutRowMajor);     \
    else coopMatLoad(into, stage, B_AT + n * B_STRIDE + (s) / 8, B_STRIDE, gl_CooperativeMatrixLayoutColumnMajor);          \
  }
#define MULTIPLY(rows, cols, j) [[unroll]] for (uint i = 0; i < FRAGMENTS_M; ++i) sums[i][j] = coopMatMulAdd(rows[i], cols, sums[i][j]);
#define LOAD_STEP(step, s)    \
  LOAD_ROWS(step##_rows, s)   \
  [[unroll]] for (uint j = 0; j < FRAGMENTS_N; ++j) LOAD_COLS(step##_cols[j], s, j)
#define MULTIPLY_STEP(step) [[unroll]] for (uint j = 0; j < FRAGMENTS_N; ++j) MULTIPLY(step##_rows, step##_cols[j], j)

  const uint team_m = gl_SubgroupID / TEAMS_N, team_n = gl_SubgroupID % TEAMS_N;
  if (begin < end) {
    TAKE(a, A, left, next_a, more_a)
    TAKE(b, B, right, next_b, more_b)
  }
  for (uint k = begin; k < end; k += SLAB) {
    barrier();
    PUT(a, A, 0, next_a, more_a)
    PUT(b, B, B_AT, next_b, more_b)
    barrier();
    if (k + SLAB < end) {
      TAKE(a, A, left, next_a, more_a)
      TAKE(b, B, right, next_b, more_b)
    }
    [[dont_unroll]] for (uint s0 = 0; s0 < SLAB; s0 += STEP)
      if (EARLY) {
        MATRIX_A even_rows[FRAGMENTS_M], odd_rows[FRAGMENTS_M];
        MATRIX_B even_cols[FRAGMENTS_N], odd_cols[FRAGMENTS_N];
        LOAD_STEP(even, s0)
        [[unroll]] for (uint s = s0; s < s0 + STEP; s += 2 * UNIT_K) {
          LOAD_STEP(odd, s + UNIT_K)
          MULTIPLY_STEP(even)
          if (s + 2 * UNIT_K < s0 + STEP) {
            LOAD_STEP(even, s + 2 * UNIT_K)
          }
          MULTIPLY_STEP(odd)
        }
      } else {
        [[unroll]] for (uint s = s0; s < s0 + STEP; s += UNIT_K) {
          MATRIX_A rows[FRAGMENTS_M];
          LOAD_ROWS(rows, s)
          [[unroll]] for (uint j = 0; j < FRAGMENTS_N; ++j) {
            MATRIX_B cols;
            LOAD_COLS(cols, s, j)
            MULTIPLY(rows, cols, j)
          }
        }
      }
  }

  barrier();
  const uint strip = gl_SubgroupID * UNIT_M * STRIP_STRIDE, first = origin.y + 4 * team_n * STRIP_QUADS;
  [[unroll]] for (uint i = 0; i < FRAGMENTS_M; ++i) {
    const uint top = origin.x + (team_m * FRAGMENTS_M + i) * UNIT_M;
    [[unroll]] for (uint j = 0; j < FRAGMENTS_N; ++j)
      coopMatStore(sums[i][j], stage, strip + j * (UNIT_N / 4), STRIP_STRIDE, gl_CooperativeMatrixLayoutRowMajor);
    controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, gl_StorageSemanticsShared, gl_SemanticsAcquireRelease);
    if (LEAVE == PAIRS) {
      [[unroll]] for (uint row = 0; row < UNIT_M; ++row)
        if (!EDGE || (top + row < M && first < N))
          store_pairs(strip, row, element_index(batch, top + row, first), min(N - first, 4 * STRIP_QUADS));
    } else if (LEAVE == OCTETS) {
      const uint octets = STRIP_QUADS / 2;
      [[unroll]] for (uint q0 = 0; q0 < UNIT_M * octets; q0 += SUBGROUP) {
        const uint q = q0 + gl_SubgroupInvocationID, m = top + q / octets, n = first + q % octets * 8;
        if (q >= UNIT_M * octets || (EDGE && (m >= M || n >= N))) continue;
        store_octet(strip, q / octets, q % octets, element_index(batch, m, n));
      }
    } else {
      for (uint q = gl_SubgroupInvocationID; q < UNIT_M * STRIP_QUADS; q += SUBGROUP) {
        const uint m = top + q / STRIP_QUADS, n = first + q % STRIP_QUADS * 4;
        if (EDGE && (m >= M || n >= N)) continue;
        finish(batch, m, n, quad_at(strip, q / STRIP_QUADS, q % STRIP_QUADS), EDGE ? min(N - n, 4) : 4);
      }
    }
    controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, gl_StorageSemanticsShared, gl_SemanticsAcquireRelease);
  }
}
