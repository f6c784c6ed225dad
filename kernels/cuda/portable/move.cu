// Moves bytes unchanged between tensors of any strides. Bound by bytes. move_units: a thread moves one unit, as large as sizes, strides
// and addresses allow, or stores a pattern. move_tiles: y[.., p, q] = x[.., p, q] where p is contiguous in x and q in y, through tiles in
// shared memory, so that both sides move whole lines.
#include "move.h"

#include "../device/access.cuh"

namespace isotope::cuda::gpu {

template <class U> __device__ inline U pattern_of(std::uint64_t bits) { return U(bits); }
template <> __device__ inline uint4 pattern_of<uint4>(std::uint64_t bits) {
  return make_uint4(std::uint32_t(bits), std::uint32_t(bits >> 32), std::uint32_t(bits), std::uint32_t(bits >> 32));
}
/// Index: the integer that counts all units.
template <class U, class Index> __device__ inline void move_unit(const move_operands& a, std::int64_t number) {
  Index i = Index(number);
  std::int64_t from = 0, to = 0;
  for (int k = a.rank; k-- > 0;) {
    const Index size = Index(a.dims[k]), rest = k > 0 ? i / size : 0;
    const std::int64_t at = std::int64_t(i - rest * size);
    from += at * a.x_strides[k];
    to += at * a.y_strides[k];
    i = rest;
  }
  pointer<U>(a.y)[to] = a.fill ? pattern_of<U>(a.bits) : pointer<const U>(a.x)[from];
}
template <class U> __device__ inline void move_unit(const move_operands& a) {
  const std::int64_t i = item();
  if (i >= a.count) return;
  if (a.count >> 31 == 0) move_unit<U, std::uint32_t>(a, i);
  else move_unit<U, std::uint64_t>(a, i);
}
extern "C" __global__ void __launch_bounds__(1024) move_units(const __grid_constant__ move_operands a) {
  if (a.unit == 16) move_unit<uint4>(a);
  else if (a.unit == 8) move_unit<std::uint64_t>(a);
  else if (a.unit == 4) move_unit<std::uint32_t>(a);
  else if (a.unit == 2) move_unit<std::uint16_t>(a);
  else move_unit<std::uint8_t>(a);
}

template <class E> __device__ inline void move_tile(const tile_operands& a) {
  // A row of a tile is a line of 128 bytes; one more word per row puts the elements of a column into different banks.
  constexpr int side = 128 / int(sizeof(E)), pitch = side + 4 / int(sizeof(E));
  __shared__ E tile[side * pitch];
  const int across = int(threadIdx.x) % side, down = int(threadIdx.x) / side, step = 256 / side;
  std::int64_t z = std::int64_t(blockIdx.x) / (a.tiles_p * a.tiles_q);
  const std::int64_t t = std::int64_t(blockIdx.x) % (a.tiles_p * a.tiles_q), p0 = t / a.tiles_q * side, q0 = t % a.tiles_q * side;
  std::int64_t from = 0, to = 0;
#pragma unroll
  for (int k = 2; k >= 0; --k) {
    from += z % a.dims[k] * a.x_strides[k];
    to += z % a.dims[k] * a.y_strides[k];
    z /= a.dims[k];
  }
#pragma unroll
  for (int j = 0; j < side; j += step) {
    const std::int64_t p = p0 + across, q = q0 + down + j;
    if (p < a.P && q < a.Q) tile[(down + j) * pitch + across] = pointer<const E>(a.x)[from + q * a.x_stride + p];
  }
  __syncthreads();
#pragma unroll
  for (int j = 0; j < side; j += step) {
    const std::int64_t p = p0 + down + j, q = q0 + across;
    if (p < a.P && q < a.Q) pointer<E>(a.y)[to + p * a.y_stride + q] = tile[across * pitch + down + j];
  }
}
extern "C" __global__ void __launch_bounds__(256) move_tiles_32(const __grid_constant__ tile_operands a) { move_tile<std::uint32_t>(a); }
extern "C" __global__ void __launch_bounds__(256) move_tiles_16(const __grid_constant__ tile_operands a) { move_tile<std::uint16_t>(a); }

}  // namespace isotope::cuda::gpu
