#version 460
#extension GL_GOOGLE_include_directive : require
// y[z, chunk, c] = sum over the rows of a chunk of x[z, row, c]. Bound by bytes. A workgroup takes ACROSS blocks of columns and a chunk of rows: each
// invocation adds every (WG / ACROSS)th row, four in flight, and then a tree adds the invocations. Few columns of many rows take two passes, first in
// chunks, then all chunks at once: the order of the terms depends on the shape alone.
#include "access.glsl"

layout(constant_id = 2) const uint ACROSS = 8;      // a power of two, like WG
layout(constant_id = 3) const bool WIDE = true;     // blocks of four columns, if all sizes and addresses are multiples of that; otherwise of one
layout(constant_id = 4) const uint X = F32;
layout(constant_id = 5) const uint Y = F32;
layout(constant_id = 6) const bool ADD = false;     // y += sum
layout(constant_id = 7) const bool MEAN = false;    // divides by `terms`

layout(push_constant, scalar) uniform push {
  uint64_t x, y;
  uint rows, cols, pitch;  // of x; pitch: elements from one row to the next
  uint each;               // rows of a chunk
  uint x_batch, y_batch;   // elements from z to z + 1
  float terms;
};

const uint DOWN = WG / ACROSS;
shared vec4 parts[WG];

vec4 load_block(uint at) { return WIDE ? load4(x, at / 4, X) : vec4(load(x, at, X), 0.0, 0.0, 0.0); }

void main() {
  const uint across = gl_LocalInvocationID.x % ACROSS, down = gl_LocalInvocationID.x / ACROSS;
  const uint c = (gl_WorkGroupID.x * ACROSS + across) * (WIDE ? 4 : 1), chunk = gl_WorkGroupID.y;
  const uint end = min(rows, (chunk + 1) * each), from = gl_WorkGroupID.z * x_batch + c;
  vec4 sum = vec4(0.0);
  if (c < cols) {
    uint r = chunk * each + down;
    for (; r + 3 * DOWN < end; r += 4 * DOWN) {
      const vec4 p = load_block(from + r * pitch), q = load_block(from + (r + DOWN) * pitch);
      const vec4 s = load_block(from + (r + 2 * DOWN) * pitch), t = load_block(from + (r + 3 * DOWN) * pitch);
      sum += (p + q) + (s + t);
    }
    for (; r < end; r += DOWN) sum += load_block(from + r * pitch);
  }
  parts[gl_LocalInvocationID.x] = sum;
  barrier();
  for (uint half_ = DOWN / 2; half_ > 0; half_ /= 2) {
    if (down < half_) parts[gl_LocalInvocationID.x] += parts[gl_LocalInvocationID.x + half_ * ACROSS];
    barrier();
  }
  if (down != 0 || c >= cols) return;
  sum = parts[gl_LocalInvocationID.x];
  if (MEAN) sum /= terms;
  const uint to = gl_WorkGroupID.z * y_batch + chunk * cols + c;
  if (WIDE) store4(y, to / 4, Y, ADD ? load4(y, to / 4, Y) + sum : sum);
  else store(y, to, Y, ADD ? load(y, to, Y) + sum.x : sum.x);
}
