#version 460
#extension GL_GOOGLE_include_directive : require
// into[i] = x[i], or into[i] += x[i], of dense tensors, four elements per invocation; also converts between floating-point formats. Bound by bytes.
#include "access.glsl"
#include "rows/flat.glsl"

layout(constant_id = 2) const uint INTO = F32;
layout(constant_id = 3) const uint X = F32;
layout(constant_id = 4) const bool ADD = false;

layout(push_constant, scalar) uniform push {
  uint64_t into, x;  // (count)
  uint count;
};

void main() {
  const uint i = item_index();
  if (4 * i >= count) return;
  const vec4 v = load_flat(x, i, count, X);
  store_flat(into, i, count, INTO, ADD ? load_flat(into, i, count, INTO) + v : v);
}
