#pragma once
// Arguments of reference/cumsum.cu.
#include <cstdint>

namespace isotope::cuda::gpu {

struct cumsum_arguments {
  std::uint64_t x, y;           // (rows / inner, n, inner), dense
  std::int64_t rows, n, inner;  // around the axis
  std::int32_t x_type, y_type, reverse;
};

}  // namespace isotope::cuda::gpu
