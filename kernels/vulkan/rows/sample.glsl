// The operands of the shaders that draw tokens, the order of logits, and the scores among which the largest is drawn.
#include "math/math.glsl"
#include "math/philox.glsl"
#include "math/two_float.glsl"

layout(constant_id = 2) const uint LOGITS = F32;

layout(push_constant, scalar) uniform push {
  uint64_t history;   // (N, T) i32
  uint64_t recent;    // (K, N) i32
  uint64_t position;  // (N) i32
  uint64_t logits;    // (N, V)
  uint64_t draw;      // (N) i32
  uint64_t sampling;  // (N, 4) f32: temperature, top_p, min_p, repetition penalty
  uint64_t key;       // (N, 4) i32: seed low, seed high, top_k, offset
  uint64_t scratch;   // values (N, V), weights (N, V), f32
  uint N, T, K, V;
  uint logits_stride, sampling_stride, key_stride;  // of rows, in elements
  uint stream;                                      // of Philox
};

const uint NONE = 0xffffffffu;

// Grows with the number; 0 for NaN and -infinity, which are never drawn. 0 and -0 have one rank, as a device may flush subnormal numbers to them, too.
uint rank_of(float x) {
  const uint u = floatBitsToUint(x), magnitude = u & 0x7fffffffu;
  if (is_nan(x) || u == 0xff800000u) return 0;
  if (magnitude == 0) return 0x80000000u;
  return u >= 0x80000000u ? ~u : u | 0x80000000u;
}
// (x - top) / temperature, at most 0.
float scaled(float x, float top, float temperature) {
  if (floatBitsToUint(x) == floatBitsToUint(top) || x == top) return 0.0;
  precise const float below = x - top;
  return value_of(quotient(vec2(below, 0.0), temperature));
}
// -log e of a random word, e = -log(1 - (word + 1/2) 2^-32).
float noise_of(uint word) {
  const float v = (float(word) + 0.5) * 2.3283064365386963e-10;
  float e;
  if (v < 0.0625) {
    precise const float series =
        v * (1.0 + v * (0.5 + v * (0.33333334 + v * (0.25 + v * (0.2 + v * (0.16666667 + v * (0.14285715 + v * 0.125)))))));
    e = series;
  } else {
    e = -log_accurate((float(~word) + 0.5) * 2.3283064365386963e-10);
  }
  return -log_accurate(e);
}
