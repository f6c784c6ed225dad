#pragma once
/// One query of attention by the definition, for ops whose keys and values lie in other ways than those of op/attention.hpp.
#include <cmath>
#include <cstdint>
#include <vector>

#include "call.hpp"

namespace isotope::conform {

/// y[at + d] = sum_t softmax_t(scale sum_d q[at + d] k[row(t) + d]) v[row(t) + d] for t < keys and d < D, where q, k, v are operands 0 to 2.
/// The bounds are those of attention: of each score, of its exponential, and of the sums.
template <class Row>
void attend(const call& c, double scale, std::int64_t at, std::int64_t D, std::int64_t keys, const Row& row, answer& y) {
  const double least = 2 * facts_of(c.on.accum()).least_normal();
  std::vector<double> p(std::size_t(keys), 0), off(std::size_t(keys), 0);
  double top = -infinity, total = 0, mean_off = 0;
  for (std::int64_t t = 0; t < keys; ++t) {
    double dot = 0, magnitude = 0;
    for (std::int64_t d = 0; d < D; ++d) {
      const double x = c.in[0][at + d] * c.in[1][row(t) + d];
      dot += x, magnitude += std::fabs(x);
    }
    p[std::size_t(t)] = scale * dot;
    off[std::size_t(t)] = c.on.u() * ((8 + double(D)) * std::fabs(scale) * magnitude + 4 * std::fabs(scale * dot));
    top = std::isnan(scale * dot) || scale * dot > top ? scale * dot : top;
  }
  if (top == -infinity) return;
  for (const double x : p) total += std::exp(x - top);
  const double lse = top + std::log(total);
  for (std::int64_t t = 0; t < keys; ++t) {
    double& x = p[std::size_t(t)];
    const double z = x - top;
    if (std::isfinite(z)) off[std::size_t(t)] += c.on.u() * (std::fabs(z) + std::fabs(x) + std::fabs(lse) + 3 * c.on.ulps());
    x = std::exp(x - lse);
    mean_off += x * off[std::size_t(t)];
  }
  const double of_sum = mean_off + c.on.u() * (double(keys) + 16 + std::fabs(lse) + 3 * c.on.ulps());
  for (std::int64_t t = 0; t < keys; ++t)
    for (std::int64_t d = 0; d < D; ++d) {
      const double v = c.in[2][row(t) + d], weight = p[std::size_t(t)];
      if (weight == 0) continue;
      y.add(at + d, weight * v,
            std::fabs(v) * (weight * (off[std::size_t(t)] + of_sum + (double(keys) + 8) * c.on.u() + c.on.stored()) + least));
    }
}

}  // namespace isotope::conform
