#version 460
#extension GL_GOOGLE_include_directive : require
// dx of layer and root-mean-square normalisation, one row per invocation. Each element is read before it is written, so dx may overwrite x or dy.
// With h = (x - mean) rstd and e = dy weight: dx = rstd (e - avg(e) - h avg(e h)), without avg(e) if no mean was subtracted. Bound by bytes.
#include "access.glsl"
#include "math/two_float.glsl"
#include "normal.glsl"

layout(constant_id = 5) const uint WEIGHT = F32;
layout(constant_id = 6) const uint DX = F32;

layout(push_constant, scalar) uniform push {
  normalised given;
  uint64_t weight;  // (C)
  uint64_t dx;      // (rows, C)
};

void main() {
  const uint row = item_index();
  if (row >= given.rows) return;
  const uint from = row * given.C;
  vec2 sum_e = vec2(0.0), sum_eh = vec2(0.0);
  for (uint c = 0; c < given.C; ++c) {
    const float e = load(given.dy, from + c, DY) * load(weight, c, WEIGHT);
    if (CENTERED) sum_e = plus(sum_e, e);
    sum_eh = plus(sum_eh, e * normal(given, row, c));
  }
  const float avg_e = value_of(quotient(sum_e, float(given.C))), avg_eh = value_of(quotient(sum_eh, float(given.C)));
  const float rstd = f32_ref(given.rstds).at[row];
  for (uint c = 0; c < given.C; ++c) {
    const float e = load(given.dy, from + c, DY) * load(weight, c, WEIGHT);
    store(dx, from + c, DX, rstd * (e - avg_e - normal(given, row, c) * avg_eh));
  }
}
