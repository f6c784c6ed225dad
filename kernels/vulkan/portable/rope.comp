#version 460
#extension GL_GOOGLE_include_directive : require
// Rotary position embedding, four pairs per invocation; both halves are read before either is written. Bound by bytes.
#include "access.glsl"
#include "math/turns.glsl"

layout(constant_id = 2) const uint X = F32;    // format of x and y
layout(constant_id = 3) const uint GIVEN = 0;  // whether positions are given

layout(push_constant, scalar) uniform push {
  uint64_t x, y;       // (B, S, H, 2, pairs)
  uint64_t table;      // (S, pairs, 2) f32: cosines and sines; if GIVEN (pairs) u64: the angle of one position in 2^-64 of a turn
  uint64_t positions;  // (S) i32
  uint count;          // blocks of four pairs in all
  uint S, H, blocks;   // blocks: of one head
  float direction;
  uint rotated;  // heads from this one on are copied
};

void main() {
  const uint i = item_index();
  if (i >= count) return;
  const uint d = i % blocks, head = i / blocks, s = head / H % S, at = head * 2 * blocks + d, t = 2 * (s * blocks + d);
  const bool copied = head % H >= rotated;
  if (copied && x == y) return;
  const vec4 a = load4(x, at, X), b = load4(x, at + blocks, X);
  if (copied) {
    store4(y, at, X, a);
    store4(y, at + blocks, X, b);
    return;
  }
  vec4 cosine, sine;
  if (GIVEN != 0) {
    const int position = load_int(positions, s);
    [[unroll]] for (int k = 0; k < 4; ++k) {
      const vec2 of = rotation(u32x2_ref(table).at[4 * d + k], position, direction);
      cosine[k] = of.x;
      sine[k] = of.y;
    }
  } else {
    const vec4 low = load4(table, t, F32), high = load4(table, t + 1, F32);
    cosine = vec4(low.xz, high.xz);
    sine = vec4(low.yw, high.yw);
  }
  store4(y, at, X, a * cosine - b * sine);
  store4(y, at + blocks, X, b * cosine + a * sine);
}
