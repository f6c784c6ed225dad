// What the attention kernels share: formats, head sizes, dropout, and dot products of rows.
#include "attention/dropout.glsl"

layout(constant_id = 2) const uint Q = F32;
layout(constant_id = 3) const uint K = F32;
layout(constant_id = 4) const uint V = F32;
layout(constant_id = 5) const uint MASK = F32;
layout(constant_id = 6) const bool MASKED = false;
layout(constant_id = 7) const bool CAUSAL = true;
layout(constant_id = 8) const uint H = 1;  // heads
layout(constant_id = 9) const uint G = 1;  // key-value heads
layout(constant_id = 10) const uint D = 64;
layout(constant_id = 11) const uint MASK_BATCH = 0;
layout(constant_id = 12) const bool DROPPED = false;  // whether probabilities are dropped
layout(constant_id = 13) const uint LAST = 0;         // a random word up to this one drops its probability
layout(constant_id = 14) const float FACTOR = 1.0;    // scales kept probabilities: 1 / (1 - p)
layout(constant_id = 15) const uint WINDOW = 0;       // most keys that a query sees; 0: no window

const uint CHUNK = 32;  // columns of a result that an invocation keeps in registers; each chunk recomputes the scores

// Strides, in elements, of a tensor (B, rows, ...) whose last axis is contiguous.
struct rows {
  uint batch, row;
};
uint at(rows r, uint b, uint row, uint head) { return b * r.batch + row * r.row + head * D; }

// Returns the dropout factor of the probability of key t for query row (b H + h) S + s.
float share_of(uint64_t scalars, uint stream, uint row, uint t) { return words_of(scalars, stream, row, t / 4)[t % 4] > LAST ? FACTOR : 0.0; }

// Query s may see the keys first_seen, first_seen + 1, ..., seen - 1.
uint seen(uint s, uint S, uint T) { return CAUSAL ? s + 1 + T - S : T; }
uint first_seen(uint s, uint S, uint T) { return WINDOW != 0 && seen(s, S, T) > WINDOW ? seen(s, S, T) - WINDOW : 0; }

float dot_of(uint64_t a, uint ia, uint ta, uint64_t b, uint ib, uint tb) {
  float sum = 0.0;
  for (uint d = 0; d < D; ++d) sum += load(a, ia + d, ta) * load(b, ib + d, tb);
  return sum;
}
