// Draws classes in proportion to softmax(logits / temperature) by the running sum in class order, one row per thread. Bound by exp.
#include "categorical.h"

#include "f64.cuh"
#include "philox.cuh"

namespace isotope::cuda::gpu {

extern "C" __global__ void __launch_bounds__(1024) reference_categorical(const __grid_constant__ reference_categorical_arguments a) {
  const std::int64_t row = item();
  if (row >= a.rows) return;
  const std::int64_t from = row * a.V;
  double top = -infinity_f64(), total = 0, sum = 0;
  for (std::int64_t c = 0; c < a.V; ++c) {
    const double x = load_f64(a.logits, from + c, a.type);
    if (x > top) top = x;
  }
  const auto weight = [&](std::int64_t c) { return exp((load_f64(a.logits, from + c, a.type) - top) / a.temperature); };
  for (std::int64_t c = 0; c < a.V; ++c) total += weight(c);
  const std::uint32_t word = random_word(*pointer<const scalars>(a.scalars), std::uint64_t(row), a.stream);
  const double wanted = (double(word) + 0.5) * 2.3283064365386963e-10 * total;  // 2^-32
  std::int64_t drawn = 0;  // the last class if a logit is NaN or infinite: then no sum exceeds anything
  while (drawn + 1 < a.V && !((sum += weight(drawn)) > wanted)) ++drawn;
  pointer<std::int32_t>(a.y)[row] = std::int32_t(drawn);
}

}  // namespace isotope::cuda::gpu
