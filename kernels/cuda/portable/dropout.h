#pragma once
// The operands of dropout.cu.
#include <cstdint>

namespace isotope::cuda::gpu {

struct dropout_operands {
  std::uint64_t x, y, scalars;  // (count)
  std::int64_t count;
  std::uint32_t stream, last;              // a random word up to `last` drops its element: p 2^32 rounded up, minus one
  std::int32_t x_type, y_type, all, wide;  // all: nothing is dropped
  float factor;                            // 1 / (1 - p)
};

}  // namespace isotope::cuda::gpu
