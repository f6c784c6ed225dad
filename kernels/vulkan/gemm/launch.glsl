// The arguments of all gemm shaders, and which part of the result a workgroup computes. Mirrors vulkan::matmul_push and matmul_constants.
layout(constant_id = 2) const uint A_TYPE = F32;
layout(constant_id = 3) const uint B_TYPE = F32;
layout(constant_id = 4) const bool A_CROSS = false;  // lines of adjacent elements of A run along M, otherwise along K
layout(constant_id = 5) const bool B_CROSS = true;   // lines of B run along N, otherwise along K
layout(constant_id = 6) const bool EDGE = true;      // some size does not divide: reads and writes are checked
layout(constant_id = 7) const bool PARTIAL = false;  // y gets f32 sums over parts of K
layout(constant_id = 8) const uint GEMM_TYPE = F32;  // format to which the result is rounded
layout(constant_id = 9) const uint Y_TYPE = F32;
layout(constant_id = 10) const bool Y_WHOLE = false;  // rows of y are whole, aligned quads
layout(constant_id = 11) const bool ACCUMULATE = false;
layout(constant_id = 12) const float ALPHA = 1.0;
layout(constant_id = 13) const float BETA = 0.0;  // 0: there is no c
layout(constant_id = 14) const uint C_TYPE = F32;
layout(constant_id = 15) const uint C_ROW = 0;  // strides of c, in elements
layout(constant_id = 16) const uint C_COL = 0;
layout(constant_id = 17) const uint C_OUTER = 0;
layout(constant_id = 18) const uint C_INNER = 0;

layout(push_constant, scalar) uniform push {
  uint64_t a;         // (M, K) of batch 0
  uint64_t b;         // (K, N)
  uint64_t c;         // (M, N)
  uint64_t y;         // (batches, M, N), or (parts, elements) f32
  uint64_t body;
  uint M, N, K;
  uint a_line, b_line;  // elements from one line to the next
  uint inner;           // batches of the inner axis
  uint a_outer, a_inner, b_outer, b_inner;  // strides of the batch axes
  uint first;     // batch of workgroup z = 0 ...
  uint before;    // ... of those that follow this many others in y
  uint parts;     // of K
  uint depth;     // of K in a part
  uint batches;   // of this dispatch
  uint elements;  // of y
#ifdef NEAR
  uint64_t near[3];  // operands 2 to 4 of the body
#endif
};

uint batch_index() { return first + gl_WorkGroupID.z / parts; }
uint part_index() { return gl_WorkGroupID.z % parts; }
uint batch_offset(uint batch, uint outer_stride, uint inner_stride) {
  return batch / inner * outer_stride + batch % inner * inner_stride;
}
// Returns (row, column) of tile i among rows x cols: groups of 8 rows of tiles, so that the tiles in flight share lines of both operands.
uvec2 tile_at(uint i, uint rows, uint cols) {
  const uint group = 8 * cols, top = i / group * 8, height = min(rows - top, 8);
  return uvec2(top + i % group % height, i % group / height);
}
