#pragma once
// The operands of move.cu.
#include "../device/axes.h"

namespace isotope::cuda::gpu {

struct move_operands {
  std::uint64_t x, y;
  std::uint64_t bits;                                                     // the pattern of a fill, repeated to eight bytes
  std::int64_t count;                                                     // in units
  std::int64_t dims[max_axes], x_strides[max_axes], y_strides[max_axes];  // in units, outermost first
  std::int32_t rank, unit, fill;                                          // unit: bytes
};

struct tile_operands {
  std::uint64_t x, y;
  std::int64_t P, Q;
  std::int64_t x_stride, y_stride;                   // of x from q to q + 1, of y from p to p + 1
  std::int64_t dims[3], x_strides[3], y_strides[3];  // of the batch
  std::int64_t tiles_p, tiles_q;
};

}  // namespace isotope::cuda::gpu
