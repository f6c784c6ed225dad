#pragma once
// Arguments of reference/categorical.cu.
#include <cstdint>

namespace isotope::cuda::gpu {

struct reference_categorical_arguments {
  std::uint64_t logits;  // (rows, V)
  std::uint64_t y;       // (rows) i32
  std::uint64_t scalars;
  std::int64_t rows, V;
  double temperature;
  std::uint32_t stream;
  std::int32_t type;
};

}  // namespace isotope::cuda::gpu
