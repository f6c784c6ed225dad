// What all attention shaders share: the shapes and strides of the operands, which keys a query sees, and the order of workgroups. Mirrors
// vulkan::attention_heads. Strides count elements; rows are contiguous. Constants 8 to 13 are each shader's own tile sizes.
layout(constant_id = 2) const uint D = 64;            // head size
layout(constant_id = 3) const uint HEADS = 1;         // H query heads
layout(constant_id = 4) const uint GROUPS = 1;        // G key-value heads; each serves H / G query heads
layout(constant_id = 5) const bool CAUSAL = false;    // query s sees keys 0 to s + T - S
layout(constant_id = 6) const bool MASKED = false;    // an additive key mask (B, T)
layout(constant_id = 7) const bool WIDE = false;      // four elements in one access
layout(constant_id = 14) const uint Q_TYPE = F32;
layout(constant_id = 15) const uint K_TYPE = F32;
layout(constant_id = 16) const uint V_TYPE = F32;
layout(constant_id = 17) const uint MASK_TYPE = F32;
layout(constant_id = 18) const uint Y_TYPE = F32;     // format of y
layout(constant_id = 19) const uint DY_TYPE = F32;
layout(constant_id = 20) const uint Q_BATCH = 64;
layout(constant_id = 21) const uint Q_ROW = 64;
layout(constant_id = 22) const uint K_BATCH = 64;
layout(constant_id = 23) const uint K_ROW = 64;
layout(constant_id = 24) const uint V_BATCH = 64;
layout(constant_id = 25) const uint V_ROW = 64;
layout(constant_id = 26) const uint MASK_BATCH = 64;
layout(constant_id = 27) const uint MASK_KEY = 1;
layout(constant_id = 28) const uint Y_BATCH = 64;
layout(constant_id = 29) const uint Y_ROW = 64;
layout(constant_id = 30) const uint DY_BATCH = 64;
layout(constant_id = 31) const uint DY_ROW = 64;
layout(constant_id = 32) const uint DQ_BATCH = 64;
layout(constant_id = 33) const uint DQ_ROW = 64;
layout(constant_id = 34) const uint DK_BATCH = 64;
layout(constant_id = 35) const uint DK_ROW = 64;
layout(constant_id = 36) const uint DV_BATCH = 64;
layout(constant_id = 37) const uint DV_ROW = 64;
layout(constant_id = 38) const bool DROPPED = false;  // whether probabilities are dropped
layout(constant_id = 39) const uint LAST = 0;         // a random word up to this one drops its probability
layout(constant_id = 40) const float FACTOR = 1.0;    // scales kept probabilities: 1 / (1 - p), or 1
layout(constant_id = 41) const bool WINDOWED = false;  // a query sees only the last `window` of these keys

layout(push_constant, scalar) uniform push {
  uint64_t q;      // (B, S, H, D) with strides
  uint64_t k;      // (B, T, G, D)
  uint64_t v;      // (B, T, G, D)
  uint64_t mask;   // (B, T); PACKED: the starts of sequences (sequences + 1) i32
  uint64_t y;      // (B, S, H, D)
  uint64_t lse;    // (B, H, S) f32, dense
  uint64_t dy;     // (B, S, H, D)
  uint64_t delta;  // (B, H, S) f32, dense: rowsum(dy y)
  uint64_t dq;     // as q, k, v
  uint64_t dk;
  uint64_t dv;
  uint64_t scalars;
#ifdef PACKED
  uint sequences, rows, same_rows;
#else
  uint B, S, T;
#endif
  float scale;
  uint stream, window;
};
#ifdef PACKED
uint S, T;  // the rows of the sequence that a workgroup has found (attention/packed.glsl)
#endif

#include "dropout.glsl"
// Which of keys 4 k to 4 k + 3 query row (b H + h) S + s keeps.
bvec4 kept(uint row, uint k) { return greaterThan(words_of(scalars, stream, row, k), uvec4(LAST)); }

const float LOG2E = 1.44269504;

uint bytes_of(uint type) { return type == F32 ? 4u : 2u; }
// Returns the address of the first row of a head: element `at` of the tensor.
uint64_t element(uint64_t base, uint at, uint type) { return base + uint64_t(at) * bytes_of(type); }

uint key_head(uint h) { return h / (HEADS / GROUPS); }
bool hidden(uint s, uint t) { return t >= T || s >= S || (CAUSAL && t > s + T - S) || (WINDOWED && t + window <= s + T - S); }
// Returns the end of the keys that queries before `s_end` see.
uint visible_keys(uint s_end) { return CAUSAL ? min(T, s_end + T - S) : T; }
// Returns the first key that query s or a later one sees.
uint first_key(uint s) { return WINDOWED && s + T - S >= window ? s + T - S + 1 - window : 0u; }
// Returns the first query that sees key t or a later one.
uint first_query(uint t) { return CAUSAL && t + S > T ? t + S - T : 0u; }
// Returns the end of the queries that see key t or an earlier one.
uint end_query(uint t) { return !WINDOWED ? S : t + S + window > T ? min(S, t + S + window - T) : 0u; }

// Orders workgroups so that neighbouring heads share caches and blocks with the most work come first: bands of 32 heads, each with all heads of one
// block after another. x: block, y: head (batch * heads + head).
uvec2 block_and_head(uint index, uint blocks, uint heads) {
  const uint band = index / (32u * blocks), first = band * 32u, wide = min(32u, heads - first), rest = index - band * 32u * blocks;
  return uvec2(rest / wide, first + rest % wide);
}
