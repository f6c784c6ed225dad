#version 460
#extension GL_GOOGLE_include_directive : require
// y[i] += x[i], or y[i] = x[i]; one element per invocation. Bound by bytes.
#include "access.glsl"
#include "axes.glsl"

layout(constant_id = 2) const uint X = F32;
layout(constant_id = 3) const uint Y = F32;
layout(constant_id = 4) const bool ADD = true;

layout(push_constant, scalar) uniform push {
  uint64_t x, y;  // any strides
  uint count;
  uint dims[6], x_strides[6], y_strides[6];
};

void main() {
  const uint i = item_index();
  if (i >= count) return;
  const uint to = offset_of(i, dims, y_strides, 0, 6);
  const float more = load(x, offset_of(i, dims, x_strides, 0, 6), X);
  store(y, to, Y, ADD ? load(y, to, Y) + more : more);
}
