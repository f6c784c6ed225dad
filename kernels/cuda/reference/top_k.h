#pragma once
// Arguments of reference/top_k.cu.
#include <cstdint>

namespace isotope::cuda::gpu {

struct reference_top_k_arguments {
  std::uint64_t x;               // (rows, n)
  std::uint64_t values, places;  // (rows, k), (rows, k) i32
  std::int64_t rows, n, k;
  std::int32_t x_type, values_type;
};

}  // namespace isotope::cuda::gpu
