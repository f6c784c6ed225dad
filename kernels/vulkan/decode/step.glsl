// What workgroups of native/decode_step.comp have in common: sizes, shared memory, words that are passed on, and products. Mirrors decode/whole_step.hpp.
layout(constant_id = 2) const uint C = 64;       // width
layout(constant_id = 3) const uint HIDDEN = 64;  // of the MLP
layout(constant_id = 4) const uint HEADS = 1;
layout(constant_id = 5) const uint D = 64;  // head size
layout(constant_id = 6) const uint LAYERS = 1;
layout(constant_id = 7) const uint GROUPS = 1;  // workgroups
layout(constant_id = 8) const uint SPLIT = 1;   // subgroups that share a line of HIDDEN elements, as in matmul_rows.comp

layout(push_constant, scalar) uniform push {
  uint64_t layers;              // (LAYERS, FIELDS) addresses
  uint64_t words;               // (LAYERS, LAYER_WORDS) u32: what workgroups pass on
  uint64_t runs;                // (GROUPS) u32: how many runs each workgroup has had
  uint64_t x;                   // (C) bf16: the residual row at the start
  uint64_t norm_weight, norm_bias;  // (C) bf16: of the last norm
  uint64_t table, logits;       // (V, C), (V) bf16
  uint64_t sequence, position;  // (1) i32
  uint V, B, T;
  float scale, epsilon;
};

// The fields of a layer: addresses of weights in bf16, each followed by its bias, and of the caches (B, HEADS, T, D).
const uint NORM_1 = 0, QKV = 2, KEYS = 4, VALUES = 5, PROJECTION = 6, NORM_2 = 8, UP = 10, DOWN = 12, FIELDS = 14;
// Words of a layer: q, k and v, attention, the residual row, hidden values, the residual row.
const uint ATTENDED = 3 * C, MIDDLE = 4 * C, INNER = 5 * C, LAST = 5 * C + HIDDEN, LAYER_WORDS = 6 * C + HIDDEN;

const uint SUBGROUPS = WG / SUBGROUP;
const uint STEP = 8 * SUBGROUP;                                                // elements of a line that a subgroup reads at once
const uint TURNS = (C + STEP - 1) / STEP;                                      // of a line of C elements
const uint PART = (HIDDEN + SPLIT * STEP - 1) / (SPLIT * STEP) * STEP;         // of a line of HIDDEN elements
const uint LONG_TURNS = PART / STEP;
const uint QKV_LINES = (3 * C + GROUPS - 1) / GROUPS, C_LINES = (C + GROUPS - 1) / GROUPS, UP_LINES = (HIDDEN + GROUPS - 1) / GROUPS;  // of one
const uint OWN = (C + WG - 1) / WG;                                            // elements of the row that an invocation normalises
const uint HOLD = (C / 4 + SUBGROUP - 1) / SUBGROUP;

layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer weights_ref { uvec4 at[]; };

shared uint64_t fields[LAYERS * FIELDS];
shared vec4 row[C / 4];                                         // the residual row
shared vec4 first_halves[HIDDEN / 8], last_halves[HIDDEN / 8];  // of each eight elements of what is multiplied
shared float split_sums[SUBGROUPS];
shared vec2 moments;  // of the row: mean, and 1 / standard deviation

uint t, lane, team, group;
uint tag;                      // of this run's words
uint gain[OWN], shift[OWN];    // of the next norm, in bf16: numbers would have to be waited for

// A word is an element and a tag in its low half.
void pass_on(uint at, float x) { atomicStore(u32_ref(words).at[at], bf16_bits(x) << 16 | tag, gl_ScopeDevice, 0, 0); }
// Waits for `count` words; statement(i, x) takes each.
#define GATHER(from, count, statement)                                                                     \
  {                                                                                                        \
    uint got[(count + WG - 1) / WG];                                                                       \
    bool all;                                                                                              \
    do {                                                                                                   \
      all = true;                                                                                          \
      [[unroll]] for (uint j = 0; j < (count + WG - 1) / WG; ++j) {                                        \
        const uint i = j * WG + t;                                                                         \
        got[j] = i < (count) ? atomicLoad(u32_ref(words).at[from], gl_ScopeDevice, 0, 0) : tag;            \
        all = all && (got[j] & 0xffffu) == tag;                                                            \
      }                                                                                                    \
    } while (!subgroupAll(all));                                                                           \
    [[unroll]] for (uint j = 0; j < (count + WG - 1) / WG; ++j) {                                          \
      const uint i = j * WG + t;                                                                           \
      if (i < (count)) {                                                                                   \
        const float x = uintBitsToFloat(got[j] & 0xffff0000u);                                             \
        statement                                                                                          \
      }                                                                                                    \
    }                                                                                                      \
  }
void put_half(uint i, float x) {
  if (i % 8 < 4) first_halves[i / 8][i % 4] = x;
  else last_halves[i / 8][i % 4] = x;
}
// Waits until nobody reads what a product has multiplied, and then for the words that the next one multiplies.
void gather_row(uint at) {
  barrier();
  GATHER(at + i, C, row[i / 4][i % 4] = x;)
  barrier();
}
void gather_attended(uint at) {
  barrier();
  GATHER(at + i, C, put_half(i, x);)
  barrier();
}
void gather_hidden(uint at) {
  barrier();
  GATHER(at + i, HIDDEN, put_half(i, x);)
  barrier();
}

void fetch_norm(uint64_t weight, uint64_t bias) {
  [[unroll]] for (uint j = 0; j < OWN; ++j) {
    const uint i = min(j * WG + t, C - 1);
    gain[j] = uint(u16_ref(weight).at[i]);
    shift[j] = uint(u16_ref(bias).at[i]);
  }
}
// Normalises the row. One subgroup computes its moments, as those of norm.comp do: if all did, reads of shared memory would take as long as a product.
void normalise() {
  if (team == 0) {
    vec4 held[HOLD];
    float sum = 0.0, squares = 0.0;
    [[unroll]] for (uint h = 0; h < HOLD; ++h) {
      const uint b = h * SUBGROUP + lane;
      held[h] = b < C / 4 ? row[b] : vec4(0.0);
      sum += (held[h].x + held[h].y) + (held[h].z + held[h].w);
    }
    const float mean = subgroupAdd(sum) / float(C);
    [[unroll]] for (uint h = 0; h < HOLD; ++h) {
      const vec4 d = held[h] - mean;
      if (h * SUBGROUP + lane < C / 4) squares += (d.x * d.x + d.y * d.y) + (d.z * d.z + d.w * d.w);
    }
    const float rstd = 1.0 / sqrt(subgroupAdd(squares) / float(C) + epsilon);
    if (lane == 0) moments = vec2(mean, rstd);
  }
  barrier();
  const float mean = moments.x, rstd = moments.y;
  [[unroll]] for (uint j = 0; j < OWN; ++j) {
    const uint i = j * WG + t;
    if (i < C) {
      float r = (row[i / 4][i % 4] - mean) * rstd * bf16_value(gain[j]);
      r += bf16_value(shift[j]);
      put_half(i, rounded(r, BF16));
    }
  }
  barrier();
}

struct eight {
  vec4 lo, hi;
};
eight numbers(uvec4 bits) {
  return eight(uintBitsToFloat(uvec4(bits.x << 16, bits.x & 0xffff0000u, bits.y << 16, bits.y & 0xffff0000u)),
               uintBitsToFloat(uvec4(bits.z << 16, bits.z & 0xffff0000u, bits.w << 16, bits.w & 0xffff0000u)));
}
float product_of(eight x, eight w) {
  float sum = x.lo.x * w.lo.x;
  [[unroll]] for (uint q = 1; q < 4; ++q) sum = fma(x.lo[q], w.lo[q], sum);
  [[unroll]] for (uint q = 0; q < 4; ++q) sum = fma(x.hi[q], w.hi[q], sum);
  return sum;
}
// Reads elements `begin` to `end` - 1 of a line of K elements, zeros where there is none: what was held before would take registers otherwise.
#define FETCH(held, count, there, weights, line, K, begin, end)                                    \
  [[unroll]] for (uint d = 0; d < count; ++d) {                                                    \
    const uint k = (begin) + 8 * (d * SUBGROUP + lane);                                            \
    held[d] = (there) && k < (end) ? weights_ref(weights).at[((line) * (K) + k) / 8] : uvec4(0u);  \
  }
#define ADD_PRODUCTS(sum, held, count, begin, end)                                                 \
  [[unroll]] for (uint d = 0; d < count; ++d) {                                                    \
    const uint k = (begin) + 8 * (d * SUBGROUP + lane);                                            \
    if (k < (end)) sum += product_of(eight(first_halves[k / 8], last_halves[k / 8]), numbers(held[d])); \
  }
// A sum with its bias, rounded after each step as separate ops are.
float with_bias(float sum, uint bias) {
  precise const float y = rounded(sum, BF16) + bf16_value(bias);
  return rounded(y, BF16);
}
float with_residual(float y, uint line) {
  precise const float sum = row[line / 4][line % 4] + y;
  return rounded(sum, BF16);
}
