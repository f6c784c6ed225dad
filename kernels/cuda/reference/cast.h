#pragma once
// Arguments of reference/cast.cu.
#include "../device/axes.h"

namespace isotope::cuda::gpu {

struct cast_arguments {
  tensor x;         // any strides
  std::uint64_t y;  // dense
  std::int64_t count;
  std::int32_t y_type;
};

}  // namespace isotope::cuda::gpu
