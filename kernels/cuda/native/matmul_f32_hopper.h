#pragma once
// The arguments of matmul_f32_hopper.cu; included by host and device code.
#include "../device/hopper.h"
#include "../gemm/gemm.h"

namespace isotope::cuda::gpu {

/// y (M, N) = a b of f32. `a` describes f32 elements as pairs of 16 bits, `b` the three planes of b. Of g, `a` and `b` are the operands
/// themselves, and everything about finishing sums counts. `cluster` blocks with adjacent row tiles share the columns of b; together they
/// have a work item. K has `slabs` slabs, of which each of `parts` parts has `per`. Work items run down groups of `group` row tiles of
/// clusters.
struct matmul_f32_hopper {
  tensor_map_bytes a, b[3];
  std::int32_t M, N, slabs, parts, per;
  std::int32_t row_tiles, column_tiles;  // row tiles of clusters
  std::int32_t cluster, group;
  gpu::gemm g;
};

/// The planes of a matrix of f32, `lines` lines of `length` elements that are `line` apart: three matrices of bf16 whose lines have `pitch`
/// elements, `plane` bytes apart. Elements behind a line are zeros.
struct matmul_planes {
  std::uint64_t from, to;
  std::int64_t line, lines, plane;
  std::int32_t length, pitch;
};

}  // namespace isotope::cuda::gpu
