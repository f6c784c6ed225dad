#pragma once
// Arguments of reference/update.cu.
#include "../device/axes.h"

namespace isotope::cuda::gpu {

struct accumulate_arguments {
  tensor x, y;  // any strides
  std::int64_t count;
  std::int32_t add;  // 0: y = x
};
/// Sums of squares: each of the parts takes every `parts`-th term.
struct squares_arguments {
  std::uint64_t x, y;  // (terms), (parts) f64
  std::int64_t terms, parts;
  std::int32_t x_type;  // f64: the terms are parts already
};
struct norm_arguments {
  std::uint64_t squares;  // () f64: the sum
  std::uint64_t norm;     // () f32
  std::uint64_t scalars;
};
struct clip_arguments {
  std::uint64_t g;        // (count)
  std::uint64_t squares;  // of clip_norm: () f64
  std::uint64_t scalars;
  std::int64_t count;
  std::int32_t g_type;
};

}  // namespace isotope::cuda::gpu
