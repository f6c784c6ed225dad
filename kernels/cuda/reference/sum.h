#pragma once
// Arguments of reference/sum.cu.
#include "../device/axes.h"

namespace isotope::cuda::gpu {

struct sum_arguments {
  std::uint64_t x;  // any strides
  std::uint64_t y;  // (parts, results)
  gpu::axes axes;   // of x: those before `outer` index the results, the others the terms
  std::int64_t results, terms, parts;
  std::int64_t divisor;  // of a mean
  std::int32_t outer, x_type, y_type, mean;
};

}  // namespace isotope::cuda::gpu
