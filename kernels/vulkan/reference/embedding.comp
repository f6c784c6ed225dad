#version 460
#extension GL_GOOGLE_include_directive : require
// Looks up rows of a table by id, one element of the result per invocation. Bound by bytes.
#include "access.glsl"

layout(constant_id = 2) const uint TABLE = F32;
layout(constant_id = 3) const uint Y = F32;

layout(push_constant, scalar) uniform push {
  uint64_t table;  // (V, C)
  uint64_t ids;    // (rows) i32
  uint64_t y;      // (rows, C)
  uint rows, V, C;
};

void main() {
  const uint i = item_index();
  if (i >= rows * C) return;
  const int id = load_int(ids, i / C);
  const bool known = id >= 0 && uint(id) < V;
  store(y, i, Y, known ? load(table, uint(id) * C + i % C, TABLE) : NOT_A_NUMBER);
}
