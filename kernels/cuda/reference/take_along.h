#pragma once
// Arguments of reference/take_along.cu.
#include <cstdint>

namespace isotope::cuda::gpu {

struct reference_take_along_arguments {
  std::uint64_t x;      // (rows, N)
  std::uint64_t index;  // (rows, K) i32
  std::uint64_t y;      // (rows, K)
  std::int64_t rows, N, K;
  std::int32_t type;
  float outside;
};
struct reference_scatter_add_arguments {
  std::uint64_t x;        // (rows, N)
  std::uint64_t updates;  // (rows, K)
  std::uint64_t index;    // (rows, K) i32
  std::uint64_t y;        // (rows, N)
  std::int64_t rows, N, K;
  std::int32_t type, updates_type;
};

}  // namespace isotope::cuda::gpu
