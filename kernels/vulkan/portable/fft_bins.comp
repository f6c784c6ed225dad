#version 460
#extension GL_GOOGLE_include_directive : require
// Computes the bins of real rows from the transforms of their even and odd numbers, where a row takes several workgroups. One bin per invocation.
// Bound by bytes.
#include "access.glsl"
#include "math/fourier.glsl"

layout(constant_id = 2) const uint Y = F32;
layout(constant_id = 3) const bool Y_ALIGNED = true;

layout(push_constant, scalar) uniform push {
  uint64_t x;       // (rows, h) pairs of f32
  uint64_t y;       // (rows, h + 1) pairs
  uint64_t circle;  // D = 2 h
  float inner, outer;
  uint rows, h, circle_bits;
};

void main() {
  const uint i = item_index(), row = i / (h + 1), k = i % (h + 1);
  if (row >= rows) return;
  const vec2 a = load_pair(x, row * h + (k < h ? k : 0), F32, true);
  vec2 v;
  if (k == 0) v = vec2(outer * (a.x + a.y), 0.0);
  else if (k == h) v = vec2(outer * (a.x - a.y), 0.0);
  else v = inner * bin_of(a, load_pair(x, row * h + h - k, F32, true), twiddle(circle, circle_bits, k));
  store_pair(y, i, Y, Y_ALIGNED, v);
}
