#version 460
#extension GL_GOOGLE_include_directive : require
// Draws classes in proportion to softmax(logits / temperature) by the running sum in class order, one row per invocation. Bound by exp.
#include "access.glsl"
#include "math/math.glsl"
#include "math/philox.glsl"
#include "math/two_float.glsl"

layout(constant_id = 2) const uint X = F32;

layout(push_constant, scalar) uniform push {
  uint64_t logits;  // (rows, V)
  uint64_t y;       // (rows) i32
  uint64_t scalars;
  uint rows, V, stream;
  float temperature;
};

float weight(uint at, float top) {
  const float x = load(logits, at, X);
  if (!is_finite(x)) return 0.0;
  return exp_accurate((x - top) / temperature);
}

void main() {
  const uint row = item_index();
  if (row >= rows) return;
  const uint from = row * V;
  float top = -INFINITY;
  bool nan = false;
  for (uint c = 0; c < V; ++c) {
    const float x = load(logits, from + c, X);
    if (is_nan(x)) nan = true;
    else if (x > top) top = x;
  }
  uint drawn = V - 1;  // stays if a logit is NaN or infinite: then no sum exceeds anything
  if (!nan && is_finite(top)) {
    vec2 total = vec2(0.0), sum = vec2(0.0);
    for (uint c = 0; c < V; ++c) total = plus(total, weight(from + c, top));
    // (word + 1/2) 2^-32 in two parts of 24 and 9 bits, both exact
    const uint word = philox(scalars_ref(scalars).seed, row / 4, scalars_ref(scalars).counter, stream)[row % 4];
    const float high = float(word >> 8) * 5.9604644775390625e-08, low = (float(word & 0xffu) + 0.5) * 2.3283064365386963e-10;
    vec2 wanted = product(total.x, high);
    wanted = plus(wanted, product(total.x, low));
    wanted = plus(wanted, total.y * high);
    for (drawn = 0; drawn + 1 < V; ++drawn) {
      sum = plus(sum, weight(from + drawn, top));
      precise const float beyond = (sum.x - wanted.x) + (sum.y - wanted.y);
      if (beyond > 0.0) break;
    }
  }
  u32_ref(y).at[row] = drawn;
}
