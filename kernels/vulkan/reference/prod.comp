#version 460
#extension GL_GOOGLE_include_directive : require
// Products over any axes: an invocation has one part of a result and takes every `parts`-th term. Bound by bytes.
#include "access.glsl"
#include "axes.glsl"

layout(constant_id = 2) const uint X = F32;
layout(constant_id = 3) const uint Y = F32;

layout(push_constant, scalar) uniform push {
  uint64_t x;  // any strides
  uint64_t y;  // (parts, results)
  uint results, terms, parts;
  uint outer;                // axes before it index the results, the others the terms
  uint dims[6], strides[6];  // of x
};

void main() {
  const uint i = item_index();
  if (i >= results * parts) return;
  const uint from = offset_of(i % results, dims, strides, 0, outer);
  float total = 1.0;
  for (uint t = i / results; t < terms; t += parts) total *= load(x, from + offset_of(t, dims, strides, outer, 6), X);
  store(y, i, Y, total);
}
