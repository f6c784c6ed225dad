#pragma once
// The arguments of portable/sample.cu are those of the reference kernel; it needs no scratch memory.
#include "../reference/sample.h"

namespace isotope::cuda::gpu {

inline constexpr int portable_sample_threads = 1024;  // of a block, which has a row
/// The bytes of dynamic shared memory: a bit for each token that the penalty is for.
constexpr std::int64_t sample_shared_bytes(std::int64_t V) { return (V + 31) / 32 * 4; }

}  // namespace isotope::cuda::gpu
