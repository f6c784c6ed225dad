// Counter-based dropout, four elements per thread: the four words of one Philox call. Bound by bytes.
#include "dropout.h"

#include "../reference/philox.cuh"
#include "../rows/vectors.cuh"

namespace isotope::cuda::gpu {

extern "C" __global__ void __launch_bounds__(1024) dropout(const __grid_constant__ dropout_operands a) {
  const std::int64_t i = item();
  if (4 * i >= a.count) return;
  float v[4];
  load_flat<4>(a.x, i, a.count, a.x_type, a.wide != 0, v);
  const scalars& s = *pointer<const scalars>(a.scalars);
  const random_words words = philox(s.seed, std::uint64_t(i), std::uint32_t(s.counter), a.stream);
#pragma unroll
  for (int k = 0; k < 4; ++k) v[k] = a.all || words.word[k] > a.last ? v[k] * a.factor : 0.0f;
  store_flat<4>(a.y, i, a.count, a.y_type, a.wide != 0, v);
}

}  // namespace isotope::cuda::gpu
