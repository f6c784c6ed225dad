#version 460
#extension GL_GOOGLE_include_directive : require
// Fourier transforms by their definition, one element of the result per invocation; sums carry their rounding errors. Bound by flops: N per result.
#include "access.glsl"
#include "math/fourier.glsl"
#include "math/two_float.glsl"

layout(constant_id = 2) const uint X = F32;
layout(constant_id = 3) const uint Y = F32;
layout(constant_id = 4) const uint FORM = 0;

const uint COMPLEX = 0, FROM_REAL = 1, TO_REAL = 2;

layout(push_constant, scalar) uniform push {
  uint64_t x;      // (rows, in_row) pairs, or numbers where the form is FROM_REAL
  uint64_t y;      // (rows, out_row) pairs, or numbers where it is TO_REAL
  uint64_t roots;  // (N) e^(-2 pi i t / N)
  float inner, outer;  // factors of inner and outer bins
  float direction;     // -1: e^(-2 pi i n k / N)
  uint rows, in_row, out_row, N;
};

void main() {
  const uint i = item_index(), row = i / out_row, k = i % out_row;
  if (row >= rows) return;
  vec2 re = vec2(0.0), im = vec2(0.0);
  uint t = 0;
  for (uint n = 0; n < in_row; ++n) {
    const uint at = row * in_row + n;
    vec2 v = FORM == FROM_REAL ? vec2(load(x, at, X), 0.0) : load_pair(x, at, X, false);
    if (FORM == TO_REAL) v = n == 0 || 2 * n == N ? vec2(outer * v.x, 0.0) : inner * v;
    vec2 w = vec2_ref(roots).at[t];
    w.y *= -direction;
    re = plus(plus(re, product(v.x, w.x)), -product(v.y, w.y));
    im = plus(plus(im, product(v.x, w.y)), product(v.y, w.x));
    t += k;
    if (t >= N) t -= N;
  }
  const vec2 sum = vec2(value_of(re), value_of(im));
  if (FORM == TO_REAL) store(y, i, Y, sum.x);
  else {
    const float f = FORM == FROM_REAL && (k == 0 || 2 * k == N) ? outer : inner;
    store_pair(y, i, Y, false, f * sum);
  }
}
