#pragma once
#include "../device/body.h"

namespace isotope::cuda::gpu {

struct elementwise_arguments {
  gpu::body body;
  std::int64_t elements;  // of each output
};

}  // namespace isotope::cuda::gpu
