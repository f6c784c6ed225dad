#pragma once
/// Attention by the definition, one query at a time; the gradient recomputes each probability from the stored log-denominators.
/// Bound by flops: the gradient evaluates every score twice, once for dq and once for dk and dv.
#include <limits>

#include <isotope/op/attention.hpp>

#include <isotope/kernels/cpu/reference/body/access.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::reference {

/// Queries, keys or values: finds element (b, s, head, d) in a tensor (B, S, width), whose heads start at column `first`.
struct head_columns {
  view x;
  std::int64_t first = 0, D = 0;
  std::int64_t at(std::int64_t b, std::int64_t s, std::int64_t head, std::int64_t d) const {
    return b * x.strides[0] + s * x.strides[1] + (first + head * D + d) * x.strides[2];
  }
  double get(std::int64_t b, std::int64_t s, std::int64_t head, std::int64_t d) const { return load(x, at(b, s, head, d)); }
  void set(std::int64_t b, std::int64_t s, std::int64_t head, std::int64_t d, double value) const { store(x, at(b, s, head, d), value); }
};

/// The operands of attention, packed or not. Gradients are laid out alike.
struct attention_operands {
  std::int64_t B, S, T, H, G, D;
  double scale, dropout;
  op::attention::constants heads;
  head_columns q, k, v;
  const view* mask = nullptr;  // (B,T)

  attention_operands(const op::attention::constants& a, std::span<const view> x)
      : H(a.heads), G(a.kv_heads), scale(a.scale), dropout(a.dropout), heads(a) {
    const bool packed = a.packed;
    B = x[0].dims[0], S = x[0].dims[1], T = packed ? S : x[1].dims[1];
    D = x[0].dims[2] / (packed ? H + 2 * G : H);
    q = {x[0], 0, D};
    k = {x[packed ? 0 : 1], packed ? H * D : 0, D};
    v = {x[packed ? 0 : 2], packed ? (H + G) * D : 0, D};
    if (a.masked && x.size() > (packed ? 1u : 3u)) mask = &x[packed ? 1 : 3];
  }
  std::int64_t group(std::int64_t h) const { return h / (H / G); }
  double score(std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t t) const {
    double dot = 0;
    for (std::int64_t d = 0; d < D; ++d) dot += q.get(b, s, h, d) * k.get(b, t, group(h), d);
    return scale * dot + (mask != nullptr ? load(*mask, b * mask->strides[0] + t * mask->strides[1]) : 0.0);
  }
  /// Returns the dropout factor of a probability: 0 or 1 / (1 - dropout).
  double share(const launch& l, std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t t) const {
    if (dropout == 0) return 1;
    const auto words = op::attention_shape::words(l.scalars->seed, std::uint32_t(heads.head_number(b, h) * S + s), std::uint32_t(t / 4),
                                                  std::uint32_t(l.scalars->counter), l.ordinal);
    return double(words[std::size_t(t % 4)]) * 0x1p-32 >= dropout ? 1 / (1 - dropout) : 0.0;
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::reference

namespace isotope::cpu {

template <class P> struct kernel<op::attention, P, kernels::reference> {
  static constexpr bool counts_all_elements = true;
  /// One probability per key.
  static constexpr std::int64_t scratch(const step_shapes& s) { return 8 * s.in[s.constants<op::attention>().packed ? 0 : 1][1]; }

  static void run(const launch& l) {
    const reference::attention_operands x(l.constants<op::attention>(), l.in);
    const reference::head_columns y{l.out[0], 0, x.D};
    const view& lse = l.out[1];
    const op::attention_range range(l.constants<op::attention>(), x.S, x.T);
    double* p = static_cast<double*>(l.scratch);  // (T)
    constexpr double infinity = std::numeric_limits<double>::infinity();
    for (std::int64_t b = 0; b < x.B; ++b)
      for (std::int64_t h = 0; h < x.H; ++h)
        for (std::int64_t s = 0; s < x.S; ++s) {
          const auto [first, n] = range.keys(s);
          double top = -infinity, total = 0;
          for (std::int64_t t = first; t < n; ++t) {
            p[t] = x.score(b, h, s, t);
            if (p[t] > top || std::isnan(p[t])) top = p[t];  // keeps NaN
          }
          const bool blind = top == -infinity;
          for (std::int64_t t = first; t < n; ++t) {
            total += p[t] = blind ? 0.0 : std::exp(p[t] - top);
            if (const double share = x.share(l, b, h, s, t); share != 1) p[t] = share == 0 ? 0.0 : p[t] * share;  // a dropped NaN becomes 0
          }
          for (std::int64_t d = 0; d < x.D; ++d) {
            double sum = 0;
            for (std::int64_t t = first; t < n; ++t) sum += p[t] * x.v.get(b, t, x.group(h), d);
            y.set(b, s, h, d, blind ? 0.0 : sum / total);
          }
          reference::store(lse, b * lse.strides[0] + h * lse.strides[1] + s * lse.strides[2], blind ? -infinity : top + std::log(total));
        }
  }
};

template <class P> struct kernel<op::attention_grad, P, kernels::reference> {
  static constexpr bool counts_all_elements = true;
  /// One row of dq, or of dk and dv.
  static constexpr std::int64_t scratch(const step_shapes& s) { return 16 * s.in[0][2]; }

  static void run(const launch& l) {
    const auto n = std::size_t(op::attention_shape::operands(l.constants<op::attention>()));
    const reference::attention_operands x(l.constants<op::attention>(), l.in), dx(l.constants<op::attention>(), l.out);
    const reference::head_columns y{l.in[n], 0, x.D}, dy{l.in[n + 2], 0, x.D};
    const view& lse = l.in[n + 1];
    const op::attention_range range(l.constants<op::attention>(), x.S, x.T);
    double* sums = static_cast<double*>(l.scratch);  // (2,D)

    struct pair {
      double p, ds;  // the probability that multiplies dy; the derivative with respect to the score
    };
    const auto at = [&](std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t t) -> pair {
      const double denominator = reference::load(lse, b * lse.strides[0] + h * lse.strides[1] + s * lse.strides[2]);
      const double score = x.score(b, h, s, t);
      if (denominator == -std::numeric_limits<double>::infinity()) return {0, 0};  // the query sees no key
      double dp = 0, mean = 0;
      for (std::int64_t d = 0; d < x.D; ++d) {
        dp += dy.get(b, s, h, d) * x.v.get(b, t, x.group(h), d);
        mean += dy.get(b, s, h, d) * y.get(b, s, h, d);
      }
      const double p = std::exp(score - denominator), share = x.share(l, b, h, s, t);
      if (share == 0) return {0, p * -mean};
      return {p * share, p * (dp * share - mean)};
    };

    for (std::int64_t b = 0; b < x.B; ++b) {
      for (std::int64_t h = 0; h < x.H; ++h)
        for (std::int64_t s = 0; s < x.S; ++s) {
          for (std::int64_t d = 0; d < x.D; ++d) sums[d] = 0;
          const auto seen = range.keys(s);
          for (std::int64_t t = seen.first; t < seen.end; ++t) {
            const double ds = at(b, h, s, t).ds;
            for (std::int64_t d = 0; d < x.D; ++d) sums[d] += ds * x.k.get(b, t, x.group(h), d);
          }
          for (std::int64_t d = 0; d < x.D; ++d) dx.q.set(b, s, h, d, x.scale * sums[d]);
        }
      for (std::int64_t g = 0; g < x.G; ++g)
        for (std::int64_t t = 0; t < x.T; ++t) {
          for (std::int64_t d = 0; d < 2 * x.D; ++d) sums[d] = 0;
          for (std::int64_t h = g * (x.H / x.G); h < (g + 1) * (x.H / x.G); ++h)
            for (std::int64_t s = 0; s < x.S; ++s) {
              if (const auto seen = range.keys(s); t < seen.first || t >= seen.end) continue;
              const auto [p, ds] = at(b, h, s, t);
              for (std::int64_t d = 0; d < x.D; ++d) {
                sums[d] += ds * x.q.get(b, s, h, d);
                sums[x.D + d] += p * dy.get(b, s, h, d);
              }
            }
          for (std::int64_t d = 0; d < x.D; ++d) {
            dx.k.set(b, t, g, d, x.scale * sums[d]);
            dx.v.set(b, t, g, d, sums[x.D + d]);
          }
        }
    }
  }
};

}  // namespace isotope::cpu
