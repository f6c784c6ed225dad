// Layer and root-mean-square normalisation and their gradients. Bound by bytes.
#include "norm.h"

#include "f64.cuh"

namespace isotope::cuda::gpu {

// One row per thread: the mean, then deviations from it, then the result. A row is read before it is written, so in place is safe.
extern "C" __global__ void __launch_bounds__(1024) reference_norm(const __grid_constant__ reference_norm_arguments a) {
  const std::int64_t row = item();
  if (row >= a.rows) return;
  const std::int64_t from = row * a.C;
  double mean = 0, squares = 0;
  if (a.centered != 0) {
    for (std::int64_t c = 0; c < a.C; ++c) mean += load_f64(a.x, from + c, a.x_type);
    mean /= double(a.C);
  }
  for (std::int64_t c = 0; c < a.C; ++c) {
    const double d = load_f64(a.x, from + c, a.x_type) - mean;
    squares += d * d;
  }
  const double rstd = 1 / sqrt(squares / double(a.C) + a.epsilon);
  for (std::int64_t c = 0; c < a.C; ++c) {
    const double h = (load_f64(a.x, from + c, a.x_type) - mean) * rstd;
    const double bias = a.centered != 0 ? load_f64(a.bias, c, a.bias_type) : 0;
    store_f64(a.y, from + c, a.y_type, h * load_f64(a.weight, c, a.weight_type) + bias);
  }
  if (a.centered != 0) pointer<float>(a.means)[row] = float(mean);
  pointer<float>(a.rstds)[row] = float(rstd);
}

namespace {

// Returns element c of a row, normalised.
__device__ inline double normal(const reference_norm_grad_arguments& a, std::int64_t row, std::int64_t c) {
  const double mean = a.centered != 0 ? double(pointer<const float>(a.means)[row]) : 0;
  return (load_f64(a.x, row * a.C + c, a.x_type) - mean) * double(pointer<const float>(a.rstds)[row]);
}

}  // namespace

// dweight = sum_rows dy h and dbias = sum_rows dy, one column per thread.
extern "C" __global__ void __launch_bounds__(1024) reference_norm_weight_grad(const __grid_constant__ reference_norm_grad_arguments a) {
  const std::int64_t c = item();
  if (c >= a.C) return;
  double dweight = 0, dbias = 0;
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const double d = load_f64(a.dy, row * a.C + c, a.dy_type);
    dweight += d * normal(a, row, c);
    dbias += d;
  }
  store_f64(a.dweight, c, a.dweight_type, dweight);
  if (a.centered != 0) store_f64(a.dbias, c, a.dbias_type, dbias);
}

// dx, one row per thread. Each element is read before it is written, so dx may overwrite x, dy or the addend, which is added to the rounded
// dx. With h = (x - mean) rstd and e = dy weight: dx = rstd (e - avg(e) - h avg(e h)), without avg(e) if no mean was subtracted.
extern "C" __global__ void __launch_bounds__(1024) reference_norm_grad(const __grid_constant__ reference_norm_grad_arguments a) {
  const std::int64_t row = item();
  if (row >= a.rows) return;
  const std::int64_t from = row * a.C;
  double avg_e = 0, avg_eh = 0;
  for (std::int64_t c = 0; c < a.C; ++c) {
    const double e = load_f64(a.dy, from + c, a.dy_type) * load_f64(a.weight, c, a.weight_type);
    avg_e += e;
    avg_eh += e * normal(a, row, c);
  }
  avg_e = a.centered != 0 ? avg_e / double(a.C) : 0;
  avg_eh /= double(a.C);
  const double rstd = double(pointer<const float>(a.rstds)[row]);
  for (std::int64_t c = 0; c < a.C; ++c) {
    const double e = load_f64(a.dy, from + c, a.dy_type) * load_f64(a.weight, c, a.weight_type);
    const float dx = rounded(float(rstd * (e - avg_e - normal(a, row, c) * avg_eh)), a.dx_type);
    store(a.dx, from + c, a.dx_type, a.addend != 0 ? load(a.addend, from + c, a.dx_type) + dx : dx);
  }
}

}  // namespace isotope::cuda::gpu
