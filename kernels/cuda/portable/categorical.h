#pragma once
// The operands of categorical.cu.
#include <cstdint>

namespace isotope::cuda::gpu {

struct categorical_operands {
  std::uint64_t x, y;  // (rows, n), (rows) i32
  std::uint64_t scalars;
  std::int64_t rows;
  double temperature;
  std::int32_t n, team;
  std::uint32_t stream;
};

}  // namespace isotope::cuda::gpu
