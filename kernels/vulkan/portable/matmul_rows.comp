#version 460
#extension GL_GOOGLE_include_directive : require
// variant plain:
// variant few: -DBODY -DBODY_MICROS=4
// variant many: -DBODY
// variant norm_plain: -DNORM
// variant norm_few: -DNORM -DBODY -DBODY_MICROS=4
// variant norm_many: -DNORM -DBODY
//
// A gemm of few rows whose operands' lines run along K, as in decoding: bound by the bytes of B, which are read once. A subgroup has COLS lines of B, whose pieces
// of 16 bytes its lanes read in turn, DEEP of each line ahead. A comes from the caches: a subgroup of 32 has read its lines of B before it has waited for
// anything else. A lane adds the products of a piece, then these sums in ascending order, then the lanes are added: an element has the same bits with any ROWS,
// COLS and DEEP. Operands of the epilogue are read first, too.
// SPLIT subgroups may share a line; then their sums are added in ascending order.
// NORM: A is normalised first (layer_norm, rms_norm): each subgroup computes the statistics, and all of a workgroup share the normalised rows; the first stores what
// else reads of the norm's results. An H200 takes 1.1 times as long for a step of GPT-2 124M if each subgroup normalises for itself.
#extension GL_KHR_shader_subgroup_arithmetic : require
#include "access.glsl"
#define NEAR
#include "gemm/launch.glsl"

layout(constant_id = 19) const uint ROWS = 1;  // M
layout(constant_id = 20) const uint COLS = 1;
layout(constant_id = 21) const uint DEEP = 4;
layout(constant_id = 22) const uint SPLIT = 1;          // subgroups that share a line, a part of K each; their sums are added in order
layout(constant_id = 23) const uint WEIGHT_TYPE = F32;  // of a norm's weight and bias
layout(constant_id = 24) const bool CENTERED = true;    // the norm is layer_norm
layout(constant_id = 25) const uint HOLD = 1;           // blocks of four elements of a row that a lane keeps while it computes the norm's statistics
layout(constant_id = 26) const float EPSILON = 0.0;
layout(constant_id = 27) const uint STORED = 0;  // bit k: result k of the norm is stored (y, means, rstds)
#define BODY_FIRST_ID 28
#define BODY_OPERAND(table, k) (k >= 2u && k < 5u ? near[(k + 1u) % 3u] : u64_ref(table).at[k])
uint64_t first_output() { return y; }
#define BODY_OUTPUT(table, k) (k == 0u ? first_output() : u64_ref(table).at[8u + k])
#include "gemm/epilogue.glsl"

const uint PIECE = B_TYPE == F32 ? 4 : 8;                       // elements
const uint FINISHED = (ROWS * COLS + SUBGROUP - 1) / SUBGROUP;  // results that a lane finishes

shared float split_sums[SPLIT == 1 ? 1 : WG / SUBGROUP * ROWS * COLS];

struct eight {
  vec4 lo, hi;  // hi is not used if a piece has four elements
};
eight numbers(uvec4 bits) {
  if (B_TYPE == F32) return eight(uintBitsToFloat(bits), vec4(0.0));
  if (B_TYPE == BF16)
    return eight(uintBitsToFloat(uvec4(bits.x << 16, bits.x & 0xffff0000u, bits.y << 16, bits.y & 0xffff0000u)),
                 uintBitsToFloat(uvec4(bits.z << 16, bits.z & 0xffff0000u, bits.w << 16, bits.w & 0xffff0000u)));
  return eight(vec4(unpackHalf2x16(bits.x), unpackHalf2x16(bits.y)), vec4(unpackHalf2x16(bits.z), unpackHalf2x16(bits.w)));
}
// Returns the piece at element i of a tensor.
eight piece_of(uint64_t base, uint i, uint t) {
  if (t == B_TYPE) return numbers(u32x4_ref(base).at[i / PIECE]);
  return eight(load4(base, i / 4, t), PIECE == 8 ? load4(base, i / 4 + 1, t) : vec4(0.0));
}
float product_of(eight x, eight w) {
  float sum = x.lo.x * w.lo.x;
  [[unroll]] for (uint q = 1; q < 4; ++q) sum = fma(x.lo[q], w.lo[q], sum);
  if (PIECE == 8)
    [[unroll]] for (uint q = 0; q < 4; ++q) sum = fma(x.hi[q], w.hi[q], sum);
  return sum;
}

#ifdef NORM
// A norm has no batches and no c, so their arguments are free: c is the norm's weight, a_outer and a_inner are the halves of the address of its bias, and b_outer
// and b_inner of a table of what it writes: y (M, K) and the statistics of each row, f32.
uint64_t address_of(uint low, uint high) { return uint64_t(low) | (uint64_t(high) << 32); }
float means[ROWS], rstds[ROWS];

// As norm.comp computes them, in the same order.
void compute_statistics() {
  const uint lane = gl_SubgroupInvocationID, blocks = K / 4;
  [[unroll]] for (uint m = 0; m < ROWS; ++m) {
    vec4 held[HOLD];
    [[unroll]] for (uint h = 0; h < HOLD; ++h) {
      const uint b = h * SUBGROUP + lane;
      held[h] = b < blocks ? load4(a, m * a_line / 4 + b, A_TYPE) : vec4(0.0);
    }
    means[m] = 0.0;
    if (CENTERED) {
      float sum = 0.0;
      [[unroll]] for (uint h = 0; h < HOLD; ++h) sum += (held[h].x + held[h].y) + (held[h].z + held[h].w);
      means[m] = subgroupAdd(sum) / float(K);
    }
    float squares = 0.0;
    [[unroll]] for (uint h = 0; h < HOLD; ++h) {
      const vec4 d = held[h] - means[m];
      if (h * SUBGROUP + lane < blocks) squares += (d.x * d.x + d.y * d.y) + (d.z * d.z + d.w * d.w);
    }
    rstds[m] = 1.0 / sqrt(subgroupAdd(squares) / float(K) + EPSILON);
  }
}
// The normalised rows, for all subgroups of the workgroup: the first and the last four elements of each piece.
const uint PIECES = HOLD * SUBGROUP * 4 / PIECE;  // at least those of a row
shared vec4 first_halves[ROWS * PIECES], last_halves[ROWS * PIECES];
vec4 normalised(vec4 x, uint m, vec4 weight, vec4 bias) {
  vec4 r = (x - means[m]) * rstds[m] * weight;
  if (CENTERED) r += bias;
  return vec4(rounded(r.x, A_TYPE), rounded(r.y, A_TYPE), rounded(r.z, A_TYPE), rounded(r.w, A_TYPE));
}
void normalise_piece(uint64_t x, uint64_t bias, uint p) {
  const eight weight = piece_of(c, p * PIECE, WEIGHT_TYPE), shift = CENTERED ? piece_of(bias, p * PIECE, WEIGHT_TYPE) : eight(vec4(0.0), vec4(0.0));
  [[unroll]] for (uint m = 0; m < ROWS; ++m) {
    const eight given = piece_of(x, m * a_line + p * PIECE, A_TYPE);
    const vec4 lo = normalised(given.lo, m, weight.lo, shift.lo), hi = PIECE == 8 ? normalised(given.hi, m, weight.hi, shift.hi) : vec4(0.0);
    first_halves[m * PIECES + p] = lo;
    if (PIECE == 8) last_halves[m * PIECES + p] = hi;
    if ((STORED & 1u) != 0 && group_index() == 0) {
      const uint64_t to = u64_ref(address_of(b_outer, b_inner)).at[0];
      store4(to, (m * K + p * PIECE) / 4, A_TYPE, lo);
      if (PIECE == 8) store4(to, (m * K + p * PIECE) / 4 + 1, A_TYPE, hi);
    }
  }
}
#endif

void main() {
  const uint lane = gl_SubgroupInvocationID, first = (group_index() * (WG / SUBGROUP / SPLIT) + gl_SubgroupID / SPLIT) * COLS, batch = batch_index();
#ifdef NORM
  const uint64_t at_a = a, at_b = b, bias = address_of(a_outer, a_inner);
#else
  if (SPLIT == 1 && first >= N) return;
  const uint64_t at_a = a + uint64_t(batch_offset(batch, a_outer, a_inner)) * (A_TYPE == F32 ? 4 : 2);
  const uint64_t at_b = b + uint64_t(batch_offset(batch, b_outer, b_inner)) * (B_TYPE == F32 ? 4 : 2);
#endif
  const uint step = PIECE * SUBGROUP, part = SPLIT == 1 ? K : (K + SPLIT * step - 1) / (SPLIT * step) * step;
  const uint begin = gl_SubgroupID % SPLIT * part, end = min(K, begin + part);
  uint lines[COLS];  // the first piece of each
  [[unroll]] for (uint j = 0; j < COLS; ++j) lines[j] = min(first + j, N - 1) * (b_line / PIECE);
  uvec4 held[DEEP][COLS];
#define FETCH(k0)                                                                                                            \
  [[unroll]] for (uint d = 0; d < DEEP; ++d) {                                                                               \
    const uint k = (k0) + PIECE * (d * SUBGROUP + lane);                                                                     \
    [[unroll]] for (uint j = 0; j < COLS; ++j) held[d][j] = k < end ? u32x4_ref(at_b).at[lines[j] + k / PIECE] : uvec4(0u);  \
  }
  FETCH(begin)
  element_operands from[FINISHED];
  [[unroll]] for (uint f = 0; f < FINISHED; ++f) {
    const uint e = f * SUBGROUP + lane;
    if (e < ROWS * COLS && first + e % COLS < N) from[f] = operands_of(batch, e / COLS, first + e % COLS);
  }
#ifdef NORM
  compute_statistics();
  for (uint p0 = 0; p0 < K / PIECE; p0 += WG) {  // all invocations alike: llvmpipe loses those that leave a loop before others
    const uint p = p0 + gl_LocalInvocationID.x;
    if (p < K / PIECE) normalise_piece(at_a, bias, p);
  }
  barrier();
#endif

  float sums[ROWS][COLS];
  [[unroll]] for (uint m = 0; m < ROWS; ++m)
    [[unroll]] for (uint j = 0; j < COLS; ++j) sums[m][j] = 0.0;
  for (uint k0 = begin; k0 < end; k0 += step * DEEP) {
    if (k0 > begin) {
      FETCH(k0)
    }
    [[unroll]] for (uint d = 0; d < DEEP; ++d) {
      const uint k = k0 + PIECE * (d * SUBGROUP + lane);
      if (k < end) {
        [[unroll]] for (uint m = 0; m < ROWS; ++m) {
#ifdef NORM
          const uint p = m * PIECES + k / PIECE;
          const eight x = eight(first_halves[p], PIECE == 8 ? last_halves[p] : vec4(0.0));
#else
          const eight x = piece_of(at_a, m * a_line + k, A_TYPE);
#endif
          [[unroll]] for (uint j = 0; j < COLS; ++j) sums[m][j] += product_of(x, numbers(held[d][j]));
        }
      }
    }
  }

  float totals[FINISHED];
  [[unroll]] for (uint m = 0; m < ROWS; ++m)
    [[unroll]] for (uint j = 0; j < COLS; ++j) {
      const uint e = m * COLS + j;
      const float total = subgroupAdd(sums[m][j]);
      if (lane == e % SUBGROUP) totals[e / SUBGROUP] = total;
    }
  if (SPLIT > 1) {
    [[unroll]] for (uint f = 0; f < FINISHED; ++f) {
      const uint e = f * SUBGROUP + lane;
      if (e < ROWS * COLS) split_sums[gl_SubgroupID * ROWS * COLS + e] = totals[f];
    }
    barrier();
    if (gl_SubgroupID % SPLIT != 0) return;
    [[unroll]] for (uint f = 0; f < FINISHED; ++f) {
      const uint e = min(f * SUBGROUP + lane, ROWS * COLS - 1);
      totals[f] = split_sums[gl_SubgroupID * ROWS * COLS + e];
      [[unroll]] for (uint p = 1; p < SPLIT; ++p) totals[f] += split_sums[(gl_SubgroupID + p) * ROWS * COLS + e];
    }
  }
  [[unroll]] for (uint f = 0; f < FINISHED; ++f) {
    const uint e = f * SUBGROUP + lane;
    if (e < ROWS * COLS && first + e % COLS < N) finish_element(batch, e / COLS, first + e % COLS, from[f], totals[f]);
  }
#ifdef NORM
  if ((STORED & 6u) != 0 && first == 0 && lane == 0)
    [[unroll]] for (uint m = 0; m < ROWS; ++m) {
      const uint64_t table = address_of(b_outer, b_inner);
      if ((STORED & 2u) != 0) f32_ref(u64_ref(table).at[1]).at[m] = means[m];
      if ((STORED & 4u) != 0) f32_ref(u64_ref(table).at[2]).at[m] = rstds[m];
    }
#endif
}
