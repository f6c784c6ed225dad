#version 460
#extension GL_GOOGLE_include_directive : require
// y[.., p, q] = x[.., p, q] where p is contiguous in x and q in y: tiles of 32 x 32 elements pass through shared memory, so that both sides move
// whole lines. Bound by bytes.
#include "access.glsl"

layout(constant_id = 2) const uint BYTES = 4;  // bytes of an element: 4 or 2

layout(push_constant, scalar) uniform push {
  uint64_t x, y;
  uint P, Q;
  uint x_stride, y_stride;  // strides: of x from q to q + 1, of y from p to p + 1
  uint dims[3], x_strides[3], y_strides[3];  // of the batch
};

const uint SIDE = 32, DOWN = WG / SIDE;
shared uint tile[SIDE * (SIDE + 1)];  // one more word per row puts the elements of a column into different banks

uint take(uint i) { return BYTES == 4 ? u32_ref(x).at[i] : uint(u16_ref(x).at[i]); }
void put(uint i, uint bits) {
  if (BYTES == 4) u32_ref(y).at[i] = bits;
  else u16_ref(y).at[i] = uint16_t(bits);
}

void main() {
  const uint across = gl_LocalInvocationID.x % SIDE, down = gl_LocalInvocationID.x / SIDE;
  const uint q0 = gl_WorkGroupID.x * SIDE, p0 = gl_WorkGroupID.y * SIDE;
  uint from = 0, to = 0, z = gl_WorkGroupID.z;
  for (uint k = 3; k-- > 0;) {
    from += z % dims[k] * x_strides[k];
    to += z % dims[k] * y_strides[k];
    z /= dims[k];
  }
  [[unroll]] for (uint j = 0; j < SIDE; j += DOWN) {
    const uint p = p0 + across, q = q0 + down + j;
    if (p < P && q < Q) tile[(down + j) * (SIDE + 1) + across] = take(from + q * x_stride + p);
  }
  barrier();
  [[unroll]] for (uint j = 0; j < SIDE; j += DOWN) {
    const uint p = p0 + down + j, q = q0 + across;
    if (p < P && q < Q) put(to + p * y_stride + q, tile[across * (SIDE + 1) + down + j]);
  }
}
