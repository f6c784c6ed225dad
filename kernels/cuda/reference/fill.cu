// Fills a tensor with one number, whose bits the host makes; one element per thread. Bound by bytes.
#include "fill.h"

#include "../device/access.cuh"

namespace isotope::cuda::gpu {

extern "C" __global__ void __launch_bounds__(1024) reference_fill(const __grid_constant__ fill_arguments a) {
  const std::int64_t i = item();
  if (i >= a.count) return;
  if (a.bytes == 8) pointer<std::uint64_t>(a.y)[i] = a.bits;
  else if (a.bytes == 4) pointer<std::uint32_t>(a.y)[i] = std::uint32_t(a.bits);
  else if (a.bytes == 2) pointer<std::uint16_t>(a.y)[i] = std::uint16_t(a.bits);
  else pointer<std::uint8_t>(a.y)[i] = std::uint8_t(a.bits);
}

}  // namespace isotope::cuda::gpu
