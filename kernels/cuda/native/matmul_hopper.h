#pragma once
// The arguments of matmul_hopper.cu; included by host and device code.
#include <cstdint>

#include "../device/hopper.h"

namespace isotope::cuda::gpu {

/// What follows the product, which is rounded to bf16 first. Every result is rounded to bf16 before it is used; `other` has the result's
/// sizes.
enum class hopper_epilogue : std::int32_t {
  plain,          // y = product
  add,            // y = other + product; other may be y
  bias,           // y = product + bias
  bias_gelu,      // before = product + bias, y = gelu(before); `before` may be null
  bias_residual,  // y = (product + bias) + other
  gelu_grad,      // y = product gelu'(other)
  bias_gelu_erf   // as bias_gelu, with the form of erf
};

/// y (M, N) = alpha a b, by tiles of 128 rows and BN columns. `cluster` blocks with adjacent row tiles form a cluster and share the
/// columns of b; together they have a work item. K has `slabs` slabs of 64, of which each of `parts` parts has `per`; the sums of several
/// parts go to `partial` and are added by a second kernel. Work items run down groups of `group` row tiles of clusters.
struct matmul_hopper {
  tensor_map_bytes a, b;
  std::uint64_t y, before, bias, other, partial;
  std::int32_t M, N, slabs, parts, per;
  std::int32_t row_tiles, column_tiles;  // row tiles of clusters
  std::int32_t cluster, group, stages;
  std::int32_t sums;        // buffers for sums in bf16: 2, or 0 where they leave from registers
  std::int32_t direct;      // y is f32 and written from registers; otherwise bf16
  std::int32_t accumulate;  // where y is f32 or there are several parts: y += product
  hopper_epilogue epilogue;
  float alpha;
  std::uint64_t column_sums;  // (row tiles, N) f32: the sums of y's columns over the rows of each tile, or 0; only with gelu_grad
};

}  // namespace isotope::cuda::gpu
