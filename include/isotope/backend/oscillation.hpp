#pragma once
/// How strongly a weight alternates in sign along K: what makes rounded activations harmful.
#include <cmath>
#include <cstdint>
#include <span>

namespace isotope {

/// A matrix in memory: element (n, k) of N x K lies at n n_stride + k k_stride.
struct weight_lines {
  std::int64_t N = 0, K = 0, n_stride = 0, k_stride = 0;
};

/// score = max(0, mean over n of -sum_k w[n,k] w[n,k+1] / sum_k |w[n,k] w[n,k+1]|); rows of zeros count as 0.
///
/// The share of sign changes between neighbours along K, weighted by their magnitudes, less the share that keeps the sign: 1 for strictly alternating
/// rows, 0 for rows of one sign. Random signs change half of the time, so their score is 0 but for chance: about 1 / sqrt(N (K - 1)) on either side.
///
/// Why: a gemm of smooth activations with alternating weights is a small difference of large sums, and the rounding of each activation to 11 bits
/// (f16) stays while the sums cancel: the error is as large, relative to the result, as the sums are to it. Sums of one sign or of random signs
/// lose at most what their own size, or its root, allows.
inline double oscillation(std::span<const float> w, const weight_lines& l) {
  double total = 0;
  for (std::int64_t n = 0; n < l.N; ++n) {
    const float* row = w.data() + n * l.n_stride;
    double sum = 0, size = 0;
    for (std::int64_t k = 0; k + 1 < l.K; ++k) {
      const double both = double(row[k * l.k_stride]) * double(row[(k + 1) * l.k_stride]);
      sum -= both;
      size += std::fabs(both);
    }
    if (size > 0 && std::isfinite(size)) total += sum / size;
  }
  return l.N == 0 || total <= 0 ? 0 : total / double(l.N);
}

}  // namespace isotope
