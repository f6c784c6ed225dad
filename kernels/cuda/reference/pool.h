#pragma once
// Arguments of reference/pool.cu.
#include <cstdint>

namespace isotope::cuda::gpu {

struct pool_arguments {
  std::uint64_t x;                  // (N, C)
  std::uint64_t starts;             // (B + 1) i32
  std::uint64_t y;                  // (B, C)
  std::int64_t x_stride, y_stride;  // of rows, in elements
  std::int64_t N, B, C;
  double least_norm;
  std::int32_t first;      // takes the first row of each sequence instead of the mean
  std::int32_t normalise;  // divides by the norm, at least least_norm
  std::int32_t type;       // of x and y
  std::uint64_t y_host;    // (B, C): y once more, in the host's memory, by kernels in portable/ that have vectors of 16 bytes; 0: nowhere
};

}  // namespace isotope::cuda::gpu
