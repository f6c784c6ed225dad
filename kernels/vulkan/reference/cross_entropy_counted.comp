#version 460
#extension GL_GOOGLE_include_directive : require
// 1 for each row whose target counts, else 0; one row per invocation.
#include "access.glsl"

layout(push_constant, scalar) uniform push {
  uint64_t targets;  // (rows) i32
  uint64_t counted;  // (rows) f32
  uint rows, V;
};

void main() {
  const uint row = item_index();
  if (row >= rows) return;
  const int target = load_int(targets, row);
  f32_ref(counted).at[row] = target >= 0 && uint(target) < V ? 1.0 : 0.0;
}
