#version 460
#extension GL_GOOGLE_include_directive : require
// The column sums for the gradients of weight and bias of a normalisation: dweight = sum_rows dy h, dbias = sum_rows dy. An invocation has one part
// of a column and takes every `parts`-th row, compensated; reference_sum adds the parts. Bound by bytes.
#include "access.glsl"
#include "math/two_float.glsl"
#include "normal.glsl"

layout(push_constant, scalar) uniform push {
  normalised given;
  uint64_t weights, biases;  // pairs of floats (parts, C)
  uint parts;
};

void main() {
  const uint i = item_index();
  if (i >= parts * given.C) return;
  const uint c = i % given.C;
  vec2 weight = vec2(0.0), bias = vec2(0.0);
  for (uint row = i / given.C; row < given.rows; row += parts) {
    const float d = load(given.dy, row * given.C + c, DY);
    weight = plus(weight, d * normal(given, row, c));
    if (CENTERED) bias = plus(bias, d);
  }
  f32_ref(weights).at[2 * i] = weight.x;
  f32_ref(weights).at[2 * i + 1] = weight.y;
  if (!CENTERED) return;
  f32_ref(biases).at[2 * i] = bias.x;
  f32_ref(biases).at[2 * i + 1] = bias.y;
}
