#pragma once
/// Random operands of attention, and its results and gradients by definition.
#include <isotope/core/philox.hpp>
#include <isotope/op/attention.hpp>

#include "harness.hpp"

namespace isotope::op_test {

struct attention_problem {
  struct sizes {
    std::int64_t B, S, T, H, G, D;
    bool causal, masked;
    std::int64_t window = 0;
  } z;
  host q, k, v, mask;
  op::attention::constants attr;
  double scale, dropout = 0;
  std::uint64_t seed = 0x0123456789abcdef;
  std::uint32_t step = 77, stream = 5;

  attention_problem(const sizes& s, dtype type, dtype accum, double given_scale = 0)
      : z(s),
        q(random({s.B, s.S, s.H * s.D}, type, 1)),
        k(random({s.B, s.T, s.G * s.D}, type, 2)),
        v(random({s.B, s.T, s.G * s.D}, type, 3)),
        mask(full({s.B, s.T}, accum, 0)),
        scale(given_scale == 0 ? 1 / std::sqrt(double(s.D)) : given_scale) {
    for (std::size_t i = 0; i < mask.at.size(); ++i) mask.at[i] = i % 3 == 1 ? -infinity : i % 3 == 2 ? 0.25 : 0;
    attr = {.heads = z.H, .kv_heads = z.G, .causal = z.causal, .masked = z.masked, .window = z.window, .scale = given_scale};
  }
  attention_problem& dropping(double p) {
    attr.dropout = dropout = p;
    return *this;
  }
  /// The dropout factor on the probability of key t for query s of head h, as the documentation of attention defines it.
  double share(std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t t) const {
    if (dropout == 0) return 1;
    const auto row = std::uint32_t((attr.first_head + b * (attr.all_heads == 0 ? z.H : attr.all_heads) + h) * z.S + s);
    const auto words = philox4x32({std::uint32_t(t / 4), row, step, stream}, {std::uint32_t(seed), std::uint32_t(seed >> 32)});
    return double(words[std::size_t(t % 4)]) / 4294967296.0 >= dropout ? 1 / (1 - dropout) : 0;
  }
  std::vector<host> operands() const {
    std::vector<host> in = {q, k, v};
    if (z.masked) in.push_back(mask);
    return in;
  }
  host packed() const {
    host x = full({z.B, z.S, (z.H + 2 * z.G) * z.D}, q.type, 0);
    std::size_t n = 0;
    for (std::int64_t row = 0; row < z.B * z.S; ++row)
      for (const host* part : {&q, &k, &v})
        for (std::int64_t c = 0; c < part->dims[-1]; ++c) x.at[n++] = (*part)[row * part->dims[-1] + c];
    return x;
  }
};

/// The scalars of a step that uses a problem's dropout seed and counter.
inline settings drawing(const attention_problem& p) {
  settings s;
  s.scalars.seed = p.seed;
  s.scalars.counter = p.step;
  s.ordinal = p.stream;
  return s;
}

struct attention_results {
  std::vector<double> y, lse, dq, dk, dv;
};
/// Computes attention with the full matrix of probabilities before and after dropout, and the derivative of sum(y dy) by the chain rule.
inline attention_results attention_by_definition(const attention_problem& p, const host* dy = nullptr) {
  const auto& [B, S, T, H, G, D, causal, masked, window] = p.z;
  attention_results r;
  r.y.assign(p.q.at.size(), 0);
  r.dq.assign(p.q.at.size(), 0);
  r.dk.assign(p.k.at.size(), 0);
  r.dv.assign(p.v.at.size(), 0);
  for (std::int64_t b = 0; b < B; ++b)
    for (std::int64_t h = 0; h < H; ++h)
      for (std::int64_t s = 0; s < S; ++s) {
        const auto g = h / (H / G);
        const auto at_q = [&](std::int64_t d) { return std::size_t((b * S + s) * H * D + h * D + d); };
        const auto at_k = [&](std::int64_t t, std::int64_t d) { return std::size_t((b * T + t) * G * D + g * D + d); };
        std::vector<double> e(std::size_t(T), -infinity);
        double sum = 0, top = -infinity;
        for (std::int64_t t = 0; t < T; ++t) {
          if (causal && t > s + T - S) continue;
          if (window != 0 && t <= s + T - S - window) continue;
          double score = 0;
          for (std::int64_t d = 0; d < D; ++d) score += p.q.at[at_q(d)] * p.k.at[at_k(t, d)];
          e[std::size_t(t)] = p.scale * score + (masked ? p.mask[b * T + t] : 0);
          top = std::max(top, e[std::size_t(t)]);
        }
        for (double& x : e) sum += x = top == -infinity ? 0 : std::exp(x - top);
        r.lse.push_back(top + std::log(sum));
        if (sum == 0) continue;
        double mean = 0;
        std::vector<double> dp(std::size_t(T), 0), share;
        for (std::int64_t t = 0; t < T; ++t) share.push_back(p.share(b, h, s, t));
        for (std::int64_t t = 0; t < T; ++t)
          for (std::int64_t d = 0; d < D; ++d) {
            const double probability = e[std::size_t(t)] / sum, left = probability * share[std::size_t(t)];
            r.y[at_q(d)] += left * p.v.at[at_k(t, d)];
            if (dy == nullptr) continue;
            dp[std::size_t(t)] += share[std::size_t(t)] * dy->at[at_q(d)] * p.v.at[at_k(t, d)];
            r.dv[at_k(t, d)] += left * dy->at[at_q(d)];
            mean += left * dy->at[at_q(d)] * p.v.at[at_k(t, d)];
          }
        for (std::int64_t t = 0; t < T; ++t)
          for (std::int64_t d = 0; d < D; ++d) {
            const double ds = e[std::size_t(t)] / sum * (dp[std::size_t(t)] - mean);
            r.dq[at_q(d)] += p.scale * ds * p.k.at[at_k(t, d)];
            r.dk[at_k(t, d)] += p.scale * ds * p.q.at[at_q(d)];
          }
      }
  return r;
}

}  // namespace isotope::op_test
