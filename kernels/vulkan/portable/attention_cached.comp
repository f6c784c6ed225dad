#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
// Attention of one query of a head to cached keys and values. Bound by the bytes of the cache, which are read once. A row of a key is read in pieces of 16 bytes by
// adjacent invocations, a team; an invocation has FLIGHT pieces of keys and as many of values in flight. Each team keeps its own maximum, sum of weights and mean
// (online softmax), and the teams of a workgroup are added at the end in pairs. So the order of all sums depends only on the shape of the cache.
// APPEND: the only query's own key and value, which come from its projections, are also written to the caches.
// Source: Dao et al. 2023, Flash-Decoding (splits over keys).
#include "access.glsl"
#include "math/exponential.glsl"
#include "attention/cached.glsl"

layout(constant_id = 7) const uint PIECE = 4;     // elements of a piece: 4, or 8 of a 16-bit format
layout(constant_id = 8) const bool WIDE = false;  // all pieces are whole and aligned
layout(constant_id = 9) const bool EXACT = true;  // weights to f32's accuracy
layout(constant_id = 10) const bool APPEND = false;

const uint FLIGHT = 8;
const uint PIECES = (D + PIECE - 1) / PIECE;  // of a row: the invocations of a team
const uint TEAMS = WG / PIECES;
const uint CHUNK = FLIGHT * TEAMS;  // keys that a workgroup reads at once
const uint HALVES = PIECE / 4;

shared vec4 cells[2 * WG];
shared float tops[WG], parts[WG];

struct piece {
  vec4 lo, hi;
};
uint64_t address(uint64_t base, uint row, uint t) { return base + uint64_t(row) * (t == F32 ? 4 : 2); }
// Returns what `bits`, 16 bytes of whole pieces, hold.
piece numbers(uvec4 bits) {
  if (CACHE_TYPE == F32) return piece(uintBitsToFloat(bits), vec4(0));
  if (CACHE_TYPE == BF16)
    return piece(uintBitsToFloat(uvec4(bits.x << 16, bits.x & 0xffff0000u, bits.y << 16, bits.y & 0xffff0000u)),
                 uintBitsToFloat(uvec4(bits.z << 16, bits.z & 0xffff0000u, bits.w << 16, bits.w & 0xffff0000u)));
  return piece(vec4(unpackHalf2x16(bits.x), unpackHalf2x16(bits.y)), vec4(unpackHalf2x16(bits.z), unpackHalf2x16(bits.w)));
}
// Elements `at` to `at` + 3 of a row, 0 beyond it.
vec4 four(uint64_t row, uint at, uint t) {
  vec4 x = vec4(0);
  [[unroll]] for (uint e = 0; e < 4; ++e)
    if (at + e < D) x[e] = load(row, at + e, t);
  return x;
}
// Returns where row t of a head is: of a cache, or the row that belongs at the end of it.
uint64_t row_of(uint64_t cache, uint64_t appended, uint t, uint end) {
  return APPEND && t + 1 == end ? appended : cache + uint64_t(t * D) * (CACHE_TYPE == F32 ? 4 : 2);
}
// Copies a row of pieces.
void copy(uint64_t from, uint64_t to) {
  for (uint p = gl_LocalInvocationID.x; p < PIECES; p += WG) {
    if (WIDE) u32x4_ref(to).at[p] = u32x4_ref(from).at[p];
    else
      for (uint d = p * PIECE; d < min(D, (p + 1) * PIECE); ++d) store(to, d, CACHE_TYPE, load(from, d, CACHE_TYPE));
  }
}
// Reads `bits` of a row's piece: the bytes of a whole piece, or four elements as f32.
uvec4 fetch(uint64_t row, uint at) {
  if (WIDE) return u32x4_ref(row).at[at / PIECE];
  return floatBitsToUint(four(row, at, CACHE_TYPE));
}
piece held(uvec4 bits) { return WIDE ? numbers(bits) : piece(uintBitsToFloat(bits), vec4(0)); }
float dot_of(piece a, piece b) { return HALVES == 1 ? dot(a.lo, b.lo) : dot(a.lo, b.lo) + dot(a.hi, b.hi); }

// Waits until the invocations of a team have written their cells.
void meet() {
  if (SUBGROUP % PIECES == 0) controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, gl_StorageSemanticsShared, gl_SemanticsAcquireRelease);
  else barrier();
}
float weight(float x) { return exponential(x, EXACT ? F32 : BF16); }

void main() {
  const uint i = group_index();
  if (i >= N * H * PARTS) return;
  const uint part = i % PARTS, query = i / PARTS, n = query / H, h = query % H;
  const key_range seen = keys_of(n);
  const uint first = max(seen.first, part * PART), end = PARTS == 1 ? seen.end : min(seen.end, (part + 1) * PART);
  if (PARTS > 1 && first >= end) return;  // attention_cached_merge.comp knows it
  const uint t = gl_LocalInvocationID.x, team = t / PIECES, at = t % PIECES * PIECE;
  const bool works = team < TEAMS;
  const uint64_t from = address(q, n * q_stride + h * D, Q_TYPE);
  const uint head = (seen.slot * G + h / (H / G)) * T;
  const uint64_t key = address(keys, head * D, CACHE_TYPE), value = address(values, head * D, CACHE_TYPE);
  const uint64_t own_key = address(new_key, h / (H / G) * D, CACHE_TYPE), own_value = address(new_value, h / (H / G) * D, CACHE_TYPE);
  if (APPEND && h % (H / G) == 0 && end == seen.end && end > 0) {
    copy(own_key, key + uint64_t((end - 1) * D) * (CACHE_TYPE == F32 ? 4 : 2));
    copy(own_value, value + uint64_t((end - 1) * D) * (CACHE_TYPE == F32 ? 4 : 2));
  }
  piece mine = piece(vec4(0), vec4(0));
  if (works) {
    mine.lo = four(from, at, Q_TYPE) * scale;
    if (HALVES == 2) mine.hi = four(from, at + 4, Q_TYPE) * scale;
  }

  float top = NO_SCORE, total = 0.0;
  piece sum = piece(vec4(0), vec4(0));
  bool undefined = false;
  for (uint base = first; base < end; base += CHUNK) {
    uvec4 k[FLIGHT], v[FLIGHT];
    [[unroll]] for (uint j = 0; j < FLIGHT; ++j) {
      const uint row = base + j * TEAMS + team;
      k[j] = works && row < end ? fetch(row_of(key, own_key, row, seen.end), at) : uvec4(0);
    }
    [[unroll]] for (uint j = 0; j < FLIGHT; ++j) {
      const uint row = base + j * TEAMS + team;
      v[j] = works && row < end ? fetch(row_of(value, own_value, row, seen.end), at) : uvec4(0);
    }
    float score[FLIGHT];
    [[unroll]] for (uint j = 0; j < FLIGHT; ++j) score[j] = dot_of(mine, held(k[j]));
    if (PIECES > 1) {
      cells[2 * t] = vec4(score[0], score[1], score[2], score[3]);
      cells[2 * t + 1] = vec4(score[4], score[5], score[6], score[7]);
      meet();
      vec4 a = vec4(0), b = vec4(0);
      if (works)
        for (uint p = 0; p < PIECES; ++p) {
          a += cells[2 * (team * PIECES + p)];
          b += cells[2 * (team * PIECES + p) + 1];
        }
      meet();
      [[unroll]] for (uint j = 0; j < 4; ++j) {
        score[j] = a[j];
        score[4 + j] = b[j];
      }
    }
    float most = top;
    [[unroll]] for (uint j = 0; j < FLIGHT; ++j) {
      if (base + j * TEAMS + team >= end) score[j] = -INFINITY;
      undefined = undefined || is_undefined(score[j]);
      most = score[j] > most ? score[j] : most;
    }
    const float shrink = weight(top - most);
    total *= shrink;
    sum.lo *= shrink;
    if (HALVES == 2) sum.hi *= shrink;
    top = most;
    [[unroll]] for (uint j = 0; j < FLIGHT; ++j) {
      const float w = base + j * TEAMS + team < end ? weight(score[j] - top) : 0.0;
      const piece x = held(v[j]);
      total += w;
      sum.lo = fma(vec4(w), x.lo, sum.lo);
      if (HALVES == 2) sum.hi = fma(vec4(w), x.hi, sum.hi);
    }
  }

  if (works && at == 0) {
    tops[team] = undefined ? INFINITY : top;
    parts[team] = total;
  }
  barrier();
  float most = NO_SCORE;
  for (uint p = 0; p < TEAMS; ++p) most = tops[p] > most ? tops[p] : most;
  const float shrink = weight(top - most);
  barrier();
  if (works && at == 0) parts[team] = total * shrink;
  cells[2 * t] = sum.lo * shrink;
  cells[2 * t + 1] = sum.hi * shrink;
  barrier();
  uint count = TEAMS;
  while (count > 1) {
    const uint half_way = (count + 1) / 2;
    if (team + half_way < count) {
      const uint other = 2 * (t + half_way * PIECES);
      cells[2 * t] += cells[other];
      if (HALVES == 2) cells[2 * t + 1] += cells[other + 1];
      if (at == 0) parts[team] += parts[team + half_way];
    }
    count = half_way;
    barrier();
  }
  if (PARTS > 1 && t == 0) {
    f32_ref(totals).at[2 * i] = most;
    f32_ref(totals).at[2 * i + 1] = parts[0];
  }
  const bool blind = floatBitsToUint(parts[0]) == 0u, defined = floatBitsToUint(most) != 0x7f800000u;
  [[dont_unroll]] for (uint d = t; d < D; d += WG) {
    const float x = cells[2 * (d / PIECE) + d % PIECE / 4][d % 4];
    if (PARTS > 1) f32_ref(sums).at[i * D + d] = x;
    else store(y, n * y_stride + h * D + d, Q_TYPE, !defined ? NOT_A_NUMBER : blind ? 0.0 : x / parts[0]);
  }
}
