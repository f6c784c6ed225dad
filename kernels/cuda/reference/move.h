#pragma once
// Arguments of reference/move.cu.
#include "../device/axes.h"

namespace isotope::cuda::gpu {

struct move_arguments {
  std::uint64_t x, y;
  std::int64_t count;          // elements written
  axes from, into;             // of x and of y, with the sizes of what is written
  std::int64_t first, length;  // of pad
  std::int32_t bytes;          // of an element
  std::int32_t padded_axis;    // zeros where the coordinate on it is not in [first, first + length); -1: all elements are copied
};

}  // namespace isotope::cuda::gpu
