#version 460
#extension GL_GOOGLE_include_directive : require
// A step of decoding of one row through all layers of a GPT in one dispatch, in bf16: the barriers of separate dispatches, five a layer, take longer than the bytes of
// the weights. Workgroups stay on their multiprocessors and pass rows on in memory: an element and the number of the run are one word of 32 bits, so who has read
// the word needs no other signal, and no fence. A workgroup reads the weights of its next products before it waits. All workgroups must run at the same time, which
// Vulkan does not promise: device_limits::step_workgroups says on which devices it is taken for granted.
// Sums have the order of matmul_rows.comp and attention_cached.comp, so the logits have the bits of separate dispatches.
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_vote : require
#include "access.glsl"
#include "math/exponential.glsl"
#include "decode/step.glsl"
#include "decode/attend.glsl"

uvec4 held_qkv[TURNS], held_projection[TURNS], held_up[TURNS], held_down[LONG_TURNS];
uint qkv_bias, projection_bias, up_bias, down_bias;  // in bf16

// The subgroup's line of round r among the lines that the workgroup has; of the last product, SPLIT subgroups have a line.
uint line_of(uint lines, uint r) { return group * lines + r * SUBGROUPS + team; }
bool has_line(uint lines, uint all, uint r) { return r * SUBGROUPS + team < lines && line_of(lines, r) < all; }

#define FETCH_LINE(held, bias, layer, field, lines, all, r)                                                   \
  {                                                                                                           \
    const bool there = has_line(lines, all, r);                                                               \
    FETCH(held, TURNS, there, fields[(layer) * FIELDS + field], line_of(lines, r), C, 0, C)                   \
    bias = there ? uint(u16_ref(fields[(layer) * FIELDS + field + 1]).at[line_of(lines, r)]) : 0;             \
  }
// Multiplies the lines; statement(line, y) takes the sum with its bias.
#define MULTIPLY(held, bias, layer, field, lines, all, statement)                                             \
  [[dont_unroll]] for (uint r = 0; r * SUBGROUPS < lines; ++r) {                                              \
    if (r > 0) {                                                                                              \
      FETCH_LINE(held, bias, layer, field, lines, all, r)                                                     \
    }                                                                                                         \
    if (has_line(lines, all, r)) {                                                                            \
      const uint line = line_of(lines, r);                                                                    \
      float sum = 0.0;                                                                                        \
      ADD_PRODUCTS(sum, held, TURNS, 0, C)                                                                    \
      const float y = with_bias(subgroupAdd(sum), bias);                                                      \
      if (lane == 0) statement                                                                                \
    }                                                                                                         \
  }
#define DOWN_LINE(r) (group * C_LINES + ((r) * SUBGROUPS + team) / SPLIT)
#define HAS_DOWN_LINE(r) (((r) * SUBGROUPS + team) / SPLIT < C_LINES && DOWN_LINE(r) < C)
#define FETCH_DOWN(layer, r)                                                                                  \
  {                                                                                                           \
    const bool there = HAS_DOWN_LINE(r);                                                                      \
    const uint begin = team % SPLIT * PART;                                                                   \
    FETCH(held_down, LONG_TURNS, there, fields[(layer) * FIELDS + DOWN], DOWN_LINE(r), HIDDEN, begin, min(HIDDEN, begin + PART)) \
    down_bias = there ? uint(u16_ref(fields[(layer) * FIELDS + DOWN + 1]).at[DOWN_LINE(r)]) : 0;              \
  }
void multiply_down(uint layer, uint at) {
  [[dont_unroll]] for (uint r = 0; r * SUBGROUPS < C_LINES * SPLIT; ++r) {
    if (r > 0) {
      FETCH_DOWN(layer, r)
    }
    const uint begin = team % SPLIT * PART;
    float total = 0.0;
    if (HAS_DOWN_LINE(r)) {
      ADD_PRODUCTS(total, held_down, LONG_TURNS, begin, min(HIDDEN, begin + PART))
      total = subgroupAdd(total);
    }
    if (SPLIT > 1) {
      if (lane == 0) split_sums[team] = total;
      barrier();
      if (team % SPLIT == 0)
        [[unroll]] for (uint p = 1; p < SPLIT; ++p) total += split_sums[team + p];
      if ((r + 1) * SUBGROUPS < C_LINES * SPLIT) barrier();
    }
    if (lane == 0 && team % SPLIT == 0 && HAS_DOWN_LINE(r)) pass_on(at + LAST + DOWN_LINE(r), with_residual(with_bias(total, down_bias), DOWN_LINE(r)));
  }
}

const uint COLS = 2;  // lines of the table that a subgroup has at once
#define TABLE_LINE(turn) (COLS * ((turn) * GROUPS * SUBGROUPS + group * SUBGROUPS + team))
#define FETCH_TABLE(held, turn)                                                                               \
  [[unroll]] for (uint j = 0; j < COLS; ++j)                                                                  \
    [[unroll]] for (uint d = 0; d < TURNS; ++d) {                                                             \
      const uint k = 8 * (d * SUBGROUP + lane);                                                               \
      held[j][d] = TABLE_LINE(turn) + j < V && k < C ? weights_ref(table).at[((TABLE_LINE(turn) + j) * C + k) / 8] : uvec4(0u); \
    }
#define MULTIPLY_TABLE(held, turn)                                                                            \
  [[unroll]] for (uint j = 0; j < COLS; ++j) {                                                                \
    float sum = 0.0;                                                                                          \
    ADD_PRODUCTS(sum, held[j], TURNS, 0, C)                                                                   \
    const float y = subgroupAdd(sum);                                                                         \
    if (lane == j && TABLE_LINE(turn) + j < V) store(logits, TABLE_LINE(turn) + j, BF16, y);                  \
  }

void multiply_layers(uint slot, uint end) {
  fetch_norm(fields[NORM_1], fields[NORM_1 + 1]);
  FETCH_LINE(held_qkv, qkv_bias, 0, QKV, QKV_LINES, 3 * C, 0)
  [[dont_unroll]] for (uint i = 0; i < LAYERS; ++i) {
    const uint at = i * LAYER_WORDS;
    if (i == 0) {
      for (uint e = t; e < C; e += WG) row[e / 4][e % 4] = load(x, e, BF16);
      barrier();
    } else {
      gather_row(at - LAYER_WORDS + LAST);
    }
    normalise();
    MULTIPLY(held_qkv, qkv_bias, i, QKV, QKV_LINES, 3 * C, pass_on(at + line, y);)
    [[dont_unroll]] for (uint h = group; h < HEADS; h += GROUPS) {
      barrier();
      attend(i, at, h, slot, end);
    }
    FETCH_LINE(held_projection, projection_bias, i, PROJECTION, C_LINES, C, 0)
    fetch_norm(fields[i * FIELDS + NORM_2], fields[i * FIELDS + NORM_2 + 1]);
    FETCH_LINE(held_up, up_bias, i, UP, UP_LINES, HIDDEN, 0)
    FETCH_DOWN(i, 0)
    gather_attended(at + ATTENDED);
    MULTIPLY(held_projection, projection_bias, i, PROJECTION, C_LINES, C, pass_on(at + MIDDLE + line, with_residual(y, line));)
    gather_row(at + MIDDLE);
    normalise();
    MULTIPLY(held_up, up_bias, i, UP, UP_LINES, HIDDEN, pass_on(at + INNER + line, rounded(gelu_tanh_short(y), BF16));)
    const bool last = i + 1 == LAYERS;
    const uint next = last ? i : i + 1;
    fetch_norm(last ? norm_weight : fields[next * FIELDS + NORM_1], last ? norm_bias : fields[next * FIELDS + NORM_1 + 1]);
    FETCH_LINE(held_qkv, qkv_bias, next, QKV, QKV_LINES, last ? 0 : 3 * C, 0)
    gather_hidden(at + INNER);
    multiply_down(i, at);
  }
}

void main() {
  t = gl_LocalInvocationID.x;
  lane = gl_SubgroupInvocationID;
  team = gl_SubgroupID;
  group = gl_WorkGroupID.x;
  for (uint i = t; i < LAYERS * FIELDS; i += WG) fields[i] = u64_ref(layers).at[i];
  const uint run = u32_ref(runs).at[group] + 1;
  tag = run & 0xffffu;
  const int slot = load_int(sequence, 0), own = load_int(position, 0);
  const uint end = slot < 0 || uint(slot) >= B || own < 0 || uint(own) >= T ? 0 : uint(own) + 1;
  barrier();
  if (t == 0) u32_ref(runs).at[group] = run;

  multiply_layers(uint(slot), end);
  uvec4 even[COLS][TURNS], odd[COLS][TURNS];
  FETCH_TABLE(even, 0)
  gather_row((LAYERS - 1) * LAYER_WORDS + LAST);
  normalise();
  // All invocations have as many turns: llvmpipe loses those that leave a loop before others.
  [[dont_unroll]] for (uint turn = 0; turn * COLS * GROUPS * SUBGROUPS < V; turn += 2) {
    FETCH_TABLE(odd, turn + 1)
    MULTIPLY_TABLE(even, turn)
    FETCH_TABLE(even, turn + 2)
    MULTIPLY_TABLE(odd, turn + 1)
  }
}
