#version 460
#extension GL_GOOGLE_include_directive : require
// Sums over any axes: an invocation has one part of a result and takes every `parts`-th term, compensated. Bound by bytes. Parts are pairs of floats
// in scratch, results innermost, and the same shader sums them until one is left.
#include "access.glsl"
#include "axes.glsl"
#include "math/two_float.glsl"

const uint PAIRS = 100;                      // a format beside those of tensors
layout(constant_id = 2) const uint X = F32;  // format of the terms
layout(constant_id = 3) const uint Y = F32;  // format of the results
layout(constant_id = 4) const bool MEAN = false;

layout(push_constant, scalar) uniform push {
  uint64_t x;  // any strides; pairs: (terms, results)
  uint64_t y;  // (results), pairs: (parts, results)
  uint results, terms, parts;
  uint divisor;              // of a mean
  uint outer;                // axes before it index the results, the others the terms
  uint dims[6], strides[6];  // of x, unless it has pairs
};

void main() {
  const uint i = item_index();
  if (i >= results * parts) return;
  const uint result = i % results, part = i / results;
  vec2 total = vec2(0.0);
  if (X == PAIRS) {
    for (uint t = part; t < terms; t += parts) total = plus(total, vec2(f32_ref(x).at[2 * (t * results + result)], f32_ref(x).at[2 * (t * results + result) + 1]));
  } else {
    const uint from = offset_of(result, dims, strides, 0, outer);
    for (uint t = part; t < terms; t += parts) total = plus(total, load(x, from + offset_of(t, dims, strides, outer, 6), X));
  }
  if (Y == PAIRS) {
    f32_ref(y).at[2 * i] = total.x;
    f32_ref(y).at[2 * i + 1] = total.y;
  } else if (MEAN) {
    store(y, i, Y, divisor == 0 ? NOT_A_NUMBER : value_of(quotient(total, float(divisor))));
  } else {
    store(y, i, Y, value_of(total));
  }
}
