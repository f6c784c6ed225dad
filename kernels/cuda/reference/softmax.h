#pragma once
// Arguments of reference/softmax.cu.
#include <cstdint>

namespace isotope::cuda::gpu {

/// A dense tensor as (rows / inner, n, inner) around an axis.
struct reference_softmax_arguments {
  std::uint64_t x, y;
  std::int64_t rows, n, inner;
  std::int32_t x_type, y_type;
  std::int32_t log;  // the logarithm of the softmax
};
struct reference_softmax_grad_arguments {
  std::uint64_t y, dy, dx;
  std::int64_t rows, n, inner;
  std::int32_t y_type, dy_type, dx_type;
  std::int32_t log;
};

}  // namespace isotope::cuda::gpu
