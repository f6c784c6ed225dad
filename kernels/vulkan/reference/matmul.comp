#version 460
#extension GL_GOOGLE_include_directive : require
// Matrix product by the definition, one element per invocation: bound by reading a and b once per multiplication.
#include "access.glsl"
#define BODY_FIRST_ID 9
#include "body/body.glsl"
#include "axes.glsl"

layout(constant_id = 2) const uint A = F32;
layout(constant_id = 3) const uint B = F32;
layout(constant_id = 4) const uint C = F32;
layout(constant_id = 5) const uint Y = F32;
layout(constant_id = 6) const uint GEMM_TYPE = F32;  // format to which the result is rounded
layout(constant_id = 7) const bool PLUS_C = false;
layout(constant_id = 8) const bool ADD = false;  // adds to y

// The sizes of y, then strides of each operand along the axes of y: 0 where it broadcasts.
layout(buffer_reference, scalar, buffer_reference_align = 4) readonly buffer shape_ref { uint dims[6], a[6], b[6], c[6]; };

layout(push_constant, scalar) uniform push {
  uint64_t a, b, c;      // (..., M, K), (..., K, N), (..., M, N); any strides
  uint64_t y;            // (..., M, N), dense
  uint64_t shape;
  uint64_t body;         // table of addresses of the epilogue
  uint count, K, a_step, b_step;  // elements of y; along K
  float alpha, beta;
};

void main() {
  const uint i = item_index();
  if (i >= count) return;
  shape_ref s = shape_ref(shape);
  const uint ia = offset_of(i, s.dims, s.a, 0, 6), ib = offset_of(i, s.dims, s.b, 0, 6);
  float sum = 0.0;
  for (uint k = 0; k < K; ++k) sum += load(a, ia + k * a_step, A) * load(b, ib + k * b_step, B);
  sum *= alpha;
  if (PLUS_C) sum += beta * load(c, offset_of(i, s.dims, s.c, 0, 6), C);
  const float product = rounded(sum, GEMM_TYPE);
  if (BODY_COUNT == 0u) store(y, i, Y, ADD ? product + load(y, i, Y) : product);
  else body_run(body, i, product);
}
