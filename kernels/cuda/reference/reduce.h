#pragma once
// Arguments of reference/prod.cu and reference/extremum.cu.
#include "../device/axes.h"

namespace isotope::cuda::gpu {

struct reduce_arguments {
  std::uint64_t x;  // any strides
  std::uint64_t y;  // (parts, results)
  gpu::axes axes;   // of x: those before `outer` index the results, the others the terms
  std::int64_t results, terms, parts;
  std::int32_t outer, x_type, y_type;
  std::int32_t which;  // of extremum: 0 maximum, 1 minimum, 2 the index of the maximum
};

struct prod_grad_arguments {
  std::uint64_t x, dy, dx;  // (rows, n), (rows), (rows, n)
  std::uint64_t before;     // (rows, n) f32: products of the elements before each one
  std::int64_t rows, n;
  std::int32_t x_type, dy_type, dx_type;
};

}  // namespace isotope::cuda::gpu
