// Moves bytes unchanged, one written element per thread: copy, the parts of concat, pad. Bound by bytes.
#include "move.h"

#include "../device/access.cuh"

namespace isotope::cuda::gpu {

template <class E> __device__ inline void move_element(const move_arguments& a, std::int64_t to, std::int64_t from, bool inside) {
  pointer<E>(a.y)[to] = inside ? pointer<const E>(a.x)[from] : E(0);
}

extern "C" __global__ void __launch_bounds__(1024) reference_move(const __grid_constant__ move_arguments a) {
  const std::int64_t i = item();
  if (i >= a.count) return;
  std::int64_t from = 0, to = 0, rest = i;
  bool inside = true;
  for (int k = a.into.rank; k-- > 0;) {
    std::int64_t at = rest % a.into.dims[k];
    rest /= a.into.dims[k];
    to += at * a.into.strides[k];
    if (k == a.padded_axis) {
      at -= a.first;
      inside = at >= 0 && at < a.length;
    }
    from += at * a.from.strides[k];
  }
  if (a.bytes == 8) move_element<std::uint64_t>(a, to, from, inside);
  else if (a.bytes == 4) move_element<std::uint32_t>(a, to, from, inside);
  else if (a.bytes == 2) move_element<std::uint16_t>(a, to, from, inside);
  else move_element<std::uint8_t>(a, to, from, inside);
}

}  // namespace isotope::cuda::gpu
