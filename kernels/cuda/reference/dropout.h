#pragma once
// Arguments of reference/dropout.cu.
#include <cstdint>

namespace isotope::cuda::gpu {

struct reference_dropout_arguments {
  std::uint64_t x, y, scalars;
  std::uint64_t least;  // an element is kept if its random word is at least this: p 2^32 rounded up
  std::int64_t count;
  std::int64_t first, run, stride;  // element i has number first + i / run stride + i % run among those of all devices
  double kept;                      // the probability of being kept, 1 - p
  std::uint32_t stream;
  std::int32_t x_type, y_type;
};

}  // namespace isotope::cuda::gpu
