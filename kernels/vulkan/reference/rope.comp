#version 460
#extension GL_GOOGLE_include_directive : require
// Rotary position embedding, one pair of elements per invocation; both are read before either is written. Bound by bytes.
#include "access.glsl"
#include "math/turns.glsl"

layout(constant_id = 2) const uint X = F32;
layout(constant_id = 3) const uint Y = F32;
layout(constant_id = 4) const uint GIVEN = 0;  // whether positions are given

layout(push_constant, scalar) uniform push {
  uint64_t x, y;       // (B, S, H, 2, pairs)
  uint64_t table;      // (S, pairs, 2) f32: cosines and sines; if GIVEN (pairs) u64: the angle of one position in 2^-64 of a turn
  uint64_t positions;  // (S) i32
  uint count;          // pairs in all
  uint S, H, pairs;
  float direction;
  uint rotated;  // heads from this one on are copied
};

void main() {
  const uint i = item_index();
  if (i >= count) return;
  const uint d = i % pairs, head = i / pairs, s = head / H % S;
  const uint at = head * 2 * pairs + d;
  const float a = load(x, at, X), b = load(x, at + pairs, X);
  if (head % H >= rotated) {
    store(y, at, Y, a);
    store(y, at + pairs, Y, b);
    return;
  }
  vec2 t;
  if (GIVEN != 0) t = rotation(u32x2_ref(table).at[d], load_int(positions, s), direction);
  else t = vec2(f32_ref(table).at[2 * (s * pairs + d)], f32_ref(table).at[2 * (s * pairs + d) + 1]);
  store(y, at, Y, a * t.x - b * t.y);
  store(y, at + pairs, Y, b * t.x + a * t.y);
}
