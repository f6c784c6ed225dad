#pragma once
// Arguments of reference/matmul.cu.
#include "../device/axes.h"
#include "../device/body.h"

namespace isotope::cuda::gpu {

struct reference_matmul_arguments {
  std::uint64_t a, b, c, y;  // (..., M, K), (..., K, N), (..., M, N); y (..., M, N), dense
  std::int32_t a_type, b_type, c_type, y_type;
  std::int32_t product_type;              // the format to which the result is rounded
  std::int32_t plus_c, add;               // adds beta c; adds to y
  std::int64_t count, K, a_step, b_step;  // elements of y; along K
  double alpha, beta;
  axes a_at, b_at, c_at;  // the sizes of y, and the strides of each operand along the axes of y: 0 where it broadcasts
  gpu::body body;         // applied to the result, if it has instructions
};

}  // namespace isotope::cuda::gpu
