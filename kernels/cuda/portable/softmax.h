#pragma once
// The arguments of softmax.cu.
#include <cstdint>

namespace isotope::cuda::gpu {

/// Columns of a row that a thread holds.
inline constexpr int softmax_elems = 16;

struct softmax_operands {
  std::uint64_t x, dy, y;  // (rows, n, inner), all in one format; of a gradient: x is the result of softmax, y the gradient
  std::int64_t rows, n, inner;
  std::int32_t team, logs, wide, held;
};

}  // namespace isotope::cuda::gpu
