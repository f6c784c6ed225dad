#version 460
#extension GL_GOOGLE_include_directive : require
// Looks up rows of a table by id, one unit of bytes per invocation. Bound by bytes.
#include "access.glsl"

layout(constant_id = 2) const uint UNIT = 16;      // bytes: 16, 8, 4 or 2
layout(constant_id = 3) const uint PER_ROW = 4;    // units per row
layout(constant_id = 4) const uint NO_ROW = 0x7fc00000u;  // NaN in the table's format, repeated to 32 bits

layout(push_constant, scalar) uniform push {
  uint64_t table;  // (V, C)
  uint64_t ids;    // (rows) i32
  uint64_t y;      // (rows, C)
  uint units, V;
};

void main() {
  const uint i = item_index();
  if (i >= units) return;
  const uint id = uint(load_int(ids, i / PER_ROW)), from = id * PER_ROW + i % PER_ROW;
  const bool known = id < V;
  if (UNIT == 16) u32x4_ref(y).at[i] = known ? u32x4_ref(table).at[from] : uvec4(NO_ROW);
  else if (UNIT == 8) u32x2_ref(y).at[i] = known ? u32x2_ref(table).at[from] : uvec2(NO_ROW);
  else if (UNIT == 4) u32_ref(y).at[i] = known ? u32_ref(table).at[from] : NO_ROW;
  else u16_ref(y).at[i] = uint16_t(known ? uint(u16_ref(table).at[from]) : NO_ROW);
}
