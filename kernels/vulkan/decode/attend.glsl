// Attention of the row's head h to its cached keys, whose bits are those of attention_cached.comp with one part: the invocations of the first half read keys, the others
// values. Teams of PIECES invocations have a row of them.
const uint PIECES = D / 8, READERS = 256, TEAMS = READERS / PIECES, FLIGHT = 8, CHUNK = FLIGHT * TEAMS;
const float NO_SCORE = -3.4028235e38;

shared float own_row[3 * D];  // its query, key and value
shared vec4 cells[2 * READERS];
shared float weights[READERS], shrinks[TEAMS], tops[TEAMS], totals[TEAMS];

bool is_undefined(float score) { return (floatBitsToUint(score) & 0x7fffffffu) > 0x7f800000u || floatBitsToUint(score) == 0x7f800000u; }
float weight(float x) { return exponential(x, BF16); }
float dot_of(eight a, eight b) { return dot(a.lo, b.lo) + dot(a.hi, b.hi); }
eight own_piece(uint i) {
  return eight(vec4(own_row[i], own_row[i + 1], own_row[i + 2], own_row[i + 3]), vec4(own_row[i + 4], own_row[i + 5], own_row[i + 6], own_row[i + 7]));
}

#define FETCH_ROWS(base)                                                                                       \
  [[unroll]] for (uint j = 0; j < FLIGHT; ++j) {                                                               \
    const uint r = (base) + j * TEAMS + party;                                                                 \
    held[j] = works && r + 1 < end ? weights_ref(cache).at[r * PIECES + piece] : uvec4(0u);                    \
  }

// `at`: the words of the layer; `end`: how many keys the row sees, its own included; 0: the row is idle.
void attend(uint layer, uint at, uint h, uint slot, uint end) {
  const bool works = t < 2 * READERS, of_keys = t < READERS;
  const uint s = t % READERS, party = s / PIECES, piece = s % PIECES, kind = of_keys ? 1 : 2;
  const uint64_t head = 2 * (uint64_t(slot) * HEADS + h) * T * D, cache = fields[layer * FIELDS + (of_keys ? KEYS : VALUES)] + head;
  uvec4 held[FLIGHT];
  FETCH_ROWS(0)
  GATHER(at + i / D * C + h * D + i % D, 3 * D, own_row[i] = x; if (i >= D && end > 0)
           u16_ref(fields[layer * FIELDS + (i < 2 * D ? KEYS : VALUES)] + head).at[(end - 1) * D + i % D] = uint16_t(got[j] >> 16);)
  barrier();
  eight mine = own_piece(8 * piece);
  mine.lo *= scale;
  mine.hi *= scale;
  float top = NO_SCORE, total = 0.0;
  eight sum = eight(vec4(0.0), vec4(0.0));
  bool undefined = false;
  [[dont_unroll]] for (uint base = 0; base < end; base += CHUNK) {
    if (base > 0) {
      FETCH_ROWS(base)
    }
    if (of_keys) {
      float score[FLIGHT];
      [[unroll]] for (uint j = 0; j < FLIGHT; ++j) {
        score[j] = 0.0;
        if (base + j * TEAMS < end) {
          eight x = numbers(held[j]);
          if (base + j * TEAMS + party + 1 == end) x = own_piece(D + 8 * piece);
          score[j] = dot_of(mine, x);
        }
      }
      if (PIECES > 1) {
        const bool second = base + 4 * TEAMS < end;
        cells[2 * s] = vec4(score[0], score[1], score[2], score[3]);
        if (second) cells[2 * s + 1] = vec4(score[4], score[5], score[6], score[7]);
        controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, gl_StorageSemanticsShared, gl_SemanticsAcquireRelease);
        vec4 a = vec4(0.0), b = vec4(0.0);
        for (uint p = 0; p < PIECES; ++p) a += cells[2 * (party * PIECES + p)];
        if (second)
          for (uint p = 0; p < PIECES; ++p) b += cells[2 * (party * PIECES + p) + 1];
        controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, gl_StorageSemanticsShared, gl_SemanticsAcquireRelease);
        [[unroll]] for (uint j = 0; j < 4; ++j) {
          score[j] = a[j];
          score[4 + j] = b[j];
        }
      }
      float most = top;
      [[unroll]] for (uint j = 0; j < FLIGHT; ++j) {
        if (base + j * TEAMS + party >= end) score[j] = -INFINITY;
        undefined = undefined || is_undefined(score[j]);
        most = score[j] > most ? score[j] : most;
      }
      const float shrink = weight(top - most);
      total *= shrink;
      top = most;
      [[unroll]] for (uint j = 0; j < FLIGHT; ++j)
        if (base + j * TEAMS < end) {
          const float w = base + j * TEAMS + party < end ? weight(score[j] - top) : 0.0;
          total += w;
          if (piece == 0) weights[j * TEAMS + party] = w;
        }
      if (piece == 0) shrinks[party] = shrink;
    }
    barrier();
    if (works && !of_keys) {
      const float shrink = shrinks[party];
      sum.lo *= shrink;
      sum.hi *= shrink;
      [[unroll]] for (uint j = 0; j < FLIGHT; ++j)
        if (base + j * TEAMS < end) {
          const float w = weights[j * TEAMS + party];
          eight x = numbers(held[j]);
          if (base + j * TEAMS + party + 1 == end) x = own_piece(2 * D + 8 * piece);
          sum.lo = fma(vec4(w), x.lo, sum.lo);
          sum.hi = fma(vec4(w), x.hi, sum.hi);
        }
    }
    if (base + CHUNK < end) barrier();
  }
  if (of_keys && piece == 0) tops[party] = undefined ? INFINITY : top;
  barrier();
  float most = NO_SCORE;
  [[unroll]] for (uint p = 0; p < TEAMS; p += SUBGROUP) most = max(most, p + lane < TEAMS ? tops[p + lane] : NO_SCORE);
  most = subgroupMax(most);
  if (of_keys && piece == 0) totals[party] = total * weight(top - most);
  if (works && !of_keys) {
    const float shrink = weight(tops[party] - most);
    cells[2 * s] = sum.lo * shrink;
    cells[2 * s + 1] = sum.hi * shrink;
  }
  barrier();
  if (t >= D) return;
  // Teams are added in pairs: half of them to the other half.
  float y[TEAMS / 2], all[TEAMS / 2];
#define CELL(p) cells[2 * ((p) * PIECES + t / 8) + t % 8 / 4][t % 4]
  [[unroll]] for (uint p = 0; p < TEAMS / 2; ++p) {
    y[p] = CELL(p) + CELL(p + TEAMS / 2);
    all[p] = totals[p] + totals[p + TEAMS / 2];
  }
  [[unroll]] for (uint n = TEAMS / 4; n > 0; n /= 2)
    [[unroll]] for (uint p = 0; p < n; ++p) {
      y[p] += y[p + n];
      all[p] += all[p + n];
    }
  const bool blind = floatBitsToUint(all[0]) == 0u, defined = floatBitsToUint(most) != 0x7f800000u;
  pass_on(at + ATTENDED + h * D + t, !defined ? NOT_A_NUMBER : blind ? 0.0 : y[0] / all[0]);
}
