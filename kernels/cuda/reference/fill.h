#pragma once
// Arguments of reference/fill.cu.
#include <cstdint>

namespace isotope::cuda::gpu {

struct fill_arguments {
  std::uint64_t y, bits;  // dense; the bits of an element
  std::int64_t count;
  std::int32_t bytes;  // of an element
};

}  // namespace isotope::cuda::gpu
