// Mean negative log-likelihood of the targets and its gradient. Bound by bytes. A row with NaN or +infinity, or of only -infinity, has
// the loss NaN.
#include "cross_entropy.h"

#include "block_sum.cuh"
#include "f64.cuh"

namespace isotope::cuda::gpu {

namespace {

__device__ inline bool counts(std::int32_t target, std::int64_t V) { return target >= 0 && target < V; }

}  // namespace

// Maxima, sums of exponentials and losses of rows of logits, one row per thread.
extern "C" __global__ void __launch_bounds__(1024) reference_cross_entropy(const __grid_constant__ cross_entropy_arguments a) {
  const std::int64_t row = item();
  if (row >= a.rows) return;
  const std::int64_t from = row * a.N;
  double top = -infinity_f64(), total = 0;
  for (std::int64_t c = 0; c < a.V; ++c) {
    const double x = load_f64(a.logits, from + c, a.type);
    if (x > top) top = x;
  }
  for (std::int64_t c = 0; c < a.V; ++c) total += exp(load_f64(a.logits, from + c, a.type) - top);
  pointer<float>(a.tops)[row] = float(total != total ? total : top);
  pointer<float>(a.sums)[row] = float(total);
  const std::int32_t target = pointer<const std::int32_t>(a.targets)[row];
  pointer<double>(a.losses)[row] = counts(target, a.V) ? (top - load_f64(a.logits, from + target, a.type)) + log(total) : 0;
}

// The mean of the losses of the rows that count, 0 if there is none; one block.
extern "C" __global__ void __launch_bounds__(1024) reference_cross_entropy_mean(const __grid_constant__ cross_entropy_arguments a) {
  double loss = 0, rows = 0;
  for (std::int64_t row = threadIdx.x; row < a.rows; row += block_sum_threads)
    if (counts(pointer<const std::int32_t>(a.targets)[row], a.V)) {
      loss += pointer<const double>(a.losses)[row];
      rows += 1;
    }
  loss = block_sum(loss);
  rows = block_sum(rows);
  if (threadIdx.x == 0) store_f64(a.loss, 0, a.loss_type, rows == 0 ? 0.0 : loss / rows);
}

// The number of rows that count; one block.
extern "C" __global__ void __launch_bounds__(1024) reference_cross_entropy_counted(const __grid_constant__ cross_entropy_grad_arguments a) {
  double rows = 0;
  for (std::int64_t row = threadIdx.x; row < a.rows; row += block_sum_threads)
    if (counts(pointer<const std::int32_t>(a.targets)[row], a.all)) rows += 1;
  rows = block_sum(rows);
  if (threadIdx.x == 0) pointer<double>(a.counted)[0] = rows;
}

// dx = dloss (exp(x - top) / sum - onehot(target)) / rows that count, 0 in rows that do not; one element per thread. dx may overwrite
// the logits.
extern "C" __global__ void __launch_bounds__(1024) reference_cross_entropy_grad(const __grid_constant__ cross_entropy_grad_arguments a) {
  const std::int64_t i = item();
  if (i >= a.rows * a.N) return;
  const std::int64_t row = i / a.N, column = i % a.N;
  const std::int32_t target = pointer<const std::int32_t>(a.targets)[row];
  double d = 0;
  if (counts(target, a.all) && column < a.V) {
    const double top = double(pointer<const float>(a.tops)[row]), sum = double(pointer<const float>(a.sums)[row]);
    const double p = exp(load_f64(a.logits, i, a.type) - top) / sum;
    d = load_f64(a.dloss, 0, a.dloss_type) * (p - (column + a.first == target ? 1.0 : 0.0)) / pointer<const double>(a.counted)[0];
  }
  store_f64(a.dx, i, a.dx_type, d);
}

}  // namespace isotope::cuda::gpu
