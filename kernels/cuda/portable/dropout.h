#pragma once
// The operands of dropout.cu.
#include <cstdint>

namespace isotope::cuda::gpu {

/// Vectors of 16 bytes that a thread takes where all are whole, aligned and of one format.
inline constexpr int dropout_vectors = 2;

struct dropout_operands {
  std::uint64_t x, y, scalars;  // (count)
  std::int64_t count;
  std::int64_t first, run, stride;   // element i has number first + i / run stride + i % run among those of all devices; run 0: first + i
  std::uint32_t stream, last;        // a random word up to `last` drops its element: p 2^32 rounded up, minus one
  std::int32_t x_type, y_type, all;  // all: nothing is dropped
  std::int32_t aligned;              // first, run and stride are multiples of four, so that four neighbours share a call
  float factor;                      // 1 / (1 - p)
};

}  // namespace isotope::cuda::gpu
