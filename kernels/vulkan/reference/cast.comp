#version 460
#extension GL_GOOGLE_include_directive : require
// Converts between formats, each number rounded once; one element per invocation. Bound by bytes.
#include "access.glsl"
#include "axes.glsl"
#include "number.glsl"

layout(constant_id = 2) const uint X = F32;
layout(constant_id = 3) const uint Y = F32;

layout(push_constant, scalar) uniform push {
  uint64_t x;  // any strides
  uint64_t y;  // dense
  uint count;
  uint dims[6], strides[6];  // of x
};

void main() {
  const uint i = item_index();
  if (i >= count) return;
  put_bits(y, i, Y, as_format(read_number(bits_at(x, offset_of(i, dims, strides, 0, 6), X), X), Y));
}
