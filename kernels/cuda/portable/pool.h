#pragma once
// The arguments of portable/pool.cu are those of the reference kernel.
#include "../reference/pool.h"

namespace isotope::cuda::gpu {

inline constexpr int pool_threads = 512;  // of a block, which has a sequence; each thread has one vector of columns at most

}  // namespace isotope::cuda::gpu
