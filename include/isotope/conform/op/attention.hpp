#pragma once
#include "../../op/attention.hpp"
#include "../../op/concat.hpp"
#include "../philox_by_the_paper.hpp"
#include "../reduction_axes.hpp"
#include "../spec.hpp"

namespace isotope::conform {

/// Attention by the full matrix of scores. Operands may be packed, and masked; see op/attention.hpp.
class attention_by_definition {
 public:
  std::int64_t B, S, T, H, G, D;

  explicit attention_by_definition(const call& c)
      : H(c.attr.i[0]),
        G(c.attr.i[1]),
        c_(c),
        causal_(c.attr.i[2] != 0),
        packed_(c.attr.i[3] != 0),
        masked_(c.attr.i[4] != 0),
        window_(c.attr.i[5]) {
    const shape& q = c.in[0].dims;
    B = q[0], S = q[1], T = packed_ ? S : c.in[1].dims[1];
    D = q[2] / (packed_ ? H + 2 * G : H);
    scale_ = c.attr.f[0] != 0 ? c.attr.f[0] : 1 / std::sqrt(double(D));
  }
  std::size_t operands() const { return packed_ ? 1 : 3; }
  std::int64_t group(std::int64_t h) const { return h / (H / G); }
  /// Where element (b, s, h, d) of queries (0), keys (1) or values (2) lies in its operand, and in which operand.
  std::size_t operand(int which) const { return packed_ ? 0 : std::size_t(which); }
  std::int64_t at(int which, std::int64_t b, std::int64_t s, std::int64_t h, std::int64_t d) const {
    const std::int64_t heads = which == 0 ? H : G, length = which == 0 ? S : T;
    if (!packed_) return ((b * length + s) * heads + h) * D + d;
    const std::int64_t first = which == 0 ? 0 : which == 1 ? H : H + G;
    return (b * S + s) * (H + 2 * G) * D + (first + h) * D + d;
  }
  double get(int which, std::int64_t b, std::int64_t s, std::int64_t h, std::int64_t d) const {
    return c_.in[operand(which)][at(which, b, s, h, d)];
  }
  double scale() const { return scale_; }
  /// What dropout multiplies the probability of a key by: 0 or 1 / (1 - dropout).
  double share(std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t t) const {
    const double p = c_.attr.f[1];
    if (p == 0) return 1;
    const auto row = std::uint64_t((b * H + h) * S + s);
    const auto words = philox_words(c_.scalars.seed, row << 32 | std::uint64_t(t / 4), std::uint32_t(c_.scalars.counter), c_.stream);
    return double(words[std::size_t(t % 4)]) * 0x1p-32 >= p ? 1 / (1 - p) : 0;
  }

  /// The probabilities of one query and, relative to each, how far a kernel's may be off.
  struct weights {
    std::vector<double> p, off;
    double least = 0;  // absolute error of a weight: exponentials below twice the least normal number may be zero
    double lse = -infinity, off_lse = 0;
  };
  weights of(std::int64_t b, std::int64_t h, std::int64_t s) const {
    const std::int64_t n = causal_ ? s + 1 + T - S : T, first = window_ == 0 || window_ > n ? 0 : n - window_;
    weights w;
    w.p.assign(std::size_t(T), 0);
    w.off.assign(std::size_t(T), 0);
    w.least = 2 * facts_of(c_.on.accum()).least_normal();
    double top = -infinity, total = 0, mean_off = 0;
    for (std::int64_t t = first; t < n; ++t) {
      double dot = 0, magnitude = 0;
      for (std::int64_t d = 0; d < D; ++d) {
        const double x = get(0, b, s, h, d) * get(1, b, t, group(h), d);
        dot += x, magnitude += std::fabs(x);
      }
      double& score = w.p[std::size_t(t)];
      score = scale_ * dot;
      w.off[std::size_t(t)] = c_.on.u() * ((8 + double(D)) * std::fabs(scale_) * magnitude + 4 * std::fabs(score));
      if (masked_) score += c_.in[packed_ ? 1 : 3][b * T + t];
      if (score > top) top = score;
    }
    if (top == -infinity) {  // the query sees no key
      for (double& p : w.p) p = 0;
      return w;
    }
    for (std::int64_t t = first; t < n; ++t) total += std::exp(w.p[std::size_t(t)] - top);
    w.lse = top + std::log(total);
    for (std::int64_t t = 0; t < T; ++t) {
      double& p = w.p[std::size_t(t)];
      const double z = t >= first && t < n ? p - top : -infinity;
      if (std::isfinite(z)) w.off[std::size_t(t)] += c_.on.u() * (std::fabs(z) + std::fabs(p) + std::fabs(w.lse) + 3 * c_.on.ulps());
      p = std::isfinite(z) ? std::exp(p - w.lse) : 0;
      mean_off += p * w.off[std::size_t(t)];
    }
    w.off_lse = mean_off + c_.on.u() * (double(T) + 16 + std::fabs(w.lse) + 3 * c_.on.ulps());
    for (double& x : w.off) x += w.off_lse;
    return w;
  }

 private:
  const call& c_;
  bool causal_, packed_, masked_;
  std::int64_t window_;
  double scale_;
};

template <> struct op_spec<op::attention> : spec_basis {
  static constexpr std::uint32_t version = 3;
  static constexpr std::array inputs{operand_role{"q, or qkv packed"}, operand_role{.name = "k, or mask", .optional = true},
                                     operand_role{.name = "v", .optional = true},
                                     operand_role{.name = "mask", .differentiable = false, .optional = true}};
  static constexpr std::array outputs{result_role{"y"}, result_role{"lse", holds::accumulated}};
  static constexpr std::array fields{
      attribute_field{.name = "heads", .slot = 0, .required = true}, attribute_field{"kv_heads", attribute_kind::integer, 1, 0},
      attribute_field{"causal", attribute_kind::flag, 2, 1},         attribute_field{"scale", attribute_kind::number, 0, 0},
      attribute_field{"dropout", attribute_kind::number, 1, 0},      attribute_field{"window", attribute_kind::integer, 5, 0},
      attribute_field{"seed", attribute_kind::scalar, 0, 0},         attribute_field{"counter", attribute_kind::scalar, 1, 0}};
  static constexpr numeric_policy policy{.sums = "keys in tiles, ascending, in f32",
                                         .contracts = true,
                                         .flushes_pairs = true,
                                         .nan = "in, then the queries that see it",
                                         .cpu_ulps = usual_cpu_ulps,
                                         .gpu_ulps = usual_gpu_ulps};
  static constexpr std::array boundary{0.0, -infinity, 80.0, -80.0};

  /// Beyond sums and exponentials: in programs of 16 bits, matrix units and pair multiplications take weights rounded to 16 bits; there NMSE <=
  /// 1.5e-5.
  static void reference(const call& c, std::span<answer> y) {
    const attention_by_definition a(c);
    y[0].resize(a.B * a.S * a.H * a.D);
    y[1].resize(a.B * a.H * a.S);
    for (std::int64_t b = 0; b < a.B; ++b)
      for (std::int64_t h = 0; h < a.H; ++h)
        for (std::int64_t s = 0; s < a.S; ++s) {
          const auto w = a.of(b, h, s);
          y[1].set((b * a.H + h) * a.S + s, w.lse, w.off_lse);
          for (std::int64_t t = 0; t < a.T; ++t)
            if (const double p = w.p[std::size_t(t)], share = a.share(b, h, s, t); p * share != 0)
              for (std::int64_t d = 0; d < a.D; ++d) {
                const double v = share * a.get(2, b, t, a.group(h), d);
                y[0].add(((b * a.S + s) * a.H + h) * a.D + d, p * v,
                         std::fabs(v) * (p * (w.off[std::size_t(t)] + (double(a.T) + 8) * c.on.u() + c.on.stored()) + w.least));
              }
        }
    y[0].nmse = c.on.stored() > 0 ? 1.5e-5 : 1e-9;
  }
  /// With the dropout factors K: dv = (K P)^T dy, dS = P (K (dy v^T) - rowsum(dy y)), dq = scale dS k, dk = scale dS^T q.
  static void gradient(const call& c, std::span<const array> dy, std::span<answer> dx) {
    const attention_by_definition a(c);
    for (std::size_t k = 0; k < a.operands(); ++k) dx[k].resize(c.in[k].dims.count());
    std::vector<double> dp(std::size_t(a.T)), magnitude(std::size_t(a.T));
    std::array<double, 3> noise{};  // mean squares that rounding y to 16 bits leaves in the gradients
    for (std::int64_t b = 0; b < a.B; ++b)
      for (std::int64_t h = 0; h < a.H; ++h)
        for (std::int64_t s = 0; s < a.S; ++s) {
          const auto w = a.of(b, h, s);
          const auto g = [&](std::int64_t d) { return dy[0][((b * a.S + s) * a.H + h) * a.D + d]; };
          double mean = 0, of_mean = 0, of_y = 0, spread_k = 0;
          for (std::int64_t t = 0; t < a.T; ++t) {
            double sum = 0, m = 0;
            for (std::int64_t d = 0; d < a.D; ++d) {
              const double x = g(d) * a.get(2, b, t, a.group(h), d);
              sum += x, m += std::fabs(x);
            }
            const double share = a.share(b, h, s, t);
            dp[std::size_t(t)] = sum *= share, magnitude[std::size_t(t)] = m *= share;
            mean += w.p[std::size_t(t)] * sum, of_mean += w.p[std::size_t(t)] * m;
          }
          for (std::int64_t d = 0; d < a.D; ++d) {
            double y = 0, k = 0;
            for (std::int64_t t = 0; t < a.T; ++t) {
              const double p = w.p[std::size_t(t)];
              if (p != 0) y += p * a.share(b, h, s, t) * a.get(2, b, t, a.group(h), d), k += p * a.scale() * a.get(1, b, t, a.group(h), d);
            }
            of_y += y * y * g(d) * g(d), spread_k += k * k;
          }
          of_y *= c.on.stored() * c.on.stored() / 3;
          noise[0] += of_y * spread_k;
          for (std::int64_t t = 0; t < a.T; ++t) {
            const double p = w.p[std::size_t(t)];
            if (p == 0) continue;
            for (std::int64_t d = 0; d < a.D; ++d) noise[1] += of_y * std::pow(p * a.scale() * a.get(0, b, s, h, d), 2);
            const std::int64_t terms = std::max(a.T, a.S) * (a.H / a.G) + a.D + 16;
            const double chain = double(terms) * c.on.u();
            const double off = p * (w.off[std::size_t(t)] + w.off_lse + chain + 3 * c.on.stored()) + w.least;
            const double ds = p * (dp[std::size_t(t)] - mean), of_ds = (magnitude[std::size_t(t)] + of_mean) * off;
            for (std::int64_t d = 0; d < a.D; ++d) {
              const double k = a.scale() * a.get(1, b, t, a.group(h), d), q = a.scale() * a.get(0, b, s, h, d);
              dx[a.operand(0)].add(a.at(0, b, s, h, d), ds * k, of_ds * std::fabs(k));
              dx[a.operand(1)].add(a.at(1, b, t, a.group(h), d), ds * q, of_ds * std::fabs(q));
              const double kept = a.share(b, h, s, t) * g(d);
              dx[a.operand(2)].add(a.at(2, b, t, a.group(h), d), p * kept, off * std::fabs(kept));
            }
          }
        }
    for (std::size_t k = 0; k < a.operands(); ++k) {
      double power = 0, of_rounding = 0;
      for (const double x : dx[k].value) power += x * x;
      for (int what = 0; what < 3; ++what) of_rounding += std::size_t(a.operand(what)) == k ? noise[std::size_t(what)] : 0;
      dx[k].nmse = c.on.stored() == 0 ? 1e-9 : 3e-5 + (power > 0 ? 4 * of_rounding / power : 0);
    }
  }

  /// Exchanges the two halves of a sequence of even length.
  static tensor<tape> swapped(tensor<tape> t) {
    const auto half = t[1] / 2;
    return concat({narrow(t, 1, half, t[1] - half), narrow(t, 1, 0, half)}, 1);
  }
  /// Exchanging the halves of keys and values changes only the order of the sums.
  static law::sides keys_swapped(std::span<const tensor<tape>> x, const attributes& a) {
    const auto at = place::current();
    return {apply<op::attention>(at, a, x[0], swapped(x[1]), swapped(x[2])), apply<op::attention>(at, a, x[0], x[1], x[2])};
  }
  /// Without a causal mask, permuting the tokens permutes the results: y(P x) = P y(x).
  static law::sides tokens_swapped(std::span<const tensor<tape>> x, const attributes& a) {
    const auto at = place::current();
    return {swapped(apply<op::attention>(at, a, swapped(x[0]), swapped(x[1]), swapped(x[2]))),
            apply<op::attention>(at, a, x[0], x[1], x[2])};
  }
  static void order_slack(const call& c, answer& right) {
    std::array<answer, 2> y;
    reference(c, y);
    for (std::size_t i = 0; i < right.slack.size(); ++i)
      right.slack[i] = 2 * y[0].slack[i] + (c.on.stored() + c.on.u()) * std::fabs(right.value[i]);
  }
  static constexpr std::array laws{law{"keys in another order", &keys_swapped, &order_slack},
                                   law{"tokens in another order", &tokens_swapped, &order_slack}};

  /// Every head has its own keys unless told otherwise; the number of operands decides packing and masking.
  static void complete(attributes& a, std::size_t operands) {
    if (a.i[1] == 0) a.i[1] = a.i[0];
    a.i[3] = operands <= 2 ? 1 : 0;
    a.i[4] = operands % 2 == 0 ? 1 : 0;
  }

  struct form {
    std::int64_t B, S, T, H, G, D;
  };
  static void cases(case_sink& s) {
    const auto with = [](const form& f, bool causal, bool packed, bool masked, double scale = 0) {
      attributes a;
      a.i = {f.H, f.G, causal ? 1 : 0, packed ? 1 : 0, masked ? 1 : 0};
      a.f[0] = scale;
      return a;
    };
    const auto add = [&](const form& f, bool causal, bool packed, bool masked, double scale = 0, bool gradient = true) {
      std::vector<operand_recipe> in;
      if (packed) in = {s.x({f.B, f.S, (f.H + 2 * f.G) * f.D})};
      else in = {s.x({f.B, f.S, f.H * f.D}), s.x({f.B, f.T, f.G * f.D}), s.x({f.B, f.T, f.G * f.D})};
      if (masked) in.push_back(s.x({f.B, packed ? f.S : f.T}, 0, 0, &generator_of<generators::key_mask>));
      s.add(std::move(in), with(f, causal, packed, masked, scale), gradient);
    };
    const auto dropped = [&](const form& f, double dropout, std::uint32_t stream = 0) {
      test_case c;
      c.stream = stream;
      c.attr = with(f, true, true, false);
      c.attr.f[1] = dropout;
      c.scalars.seed = 99;
      c.scalars.counter = 3;
      c.in = {s.x({f.B, f.S, (f.H + 2 * f.G) * f.D})};
      s.put(c, true);
    };
    // Sizes around tiles of 16, 32 and 64 queries and keys, heads of 4 to 128. Drivers on the processor compile kernels for every form of the
    // operands, three seconds each with the gradient's, so the weaker runs have few forms: fast runs repeat them with other lengths where there is
    // one batch.
    const bool fast = s.how() == strength::fast, full = s.how() == strength::full;
    if (fast) {
      add({1, 20, 20, 8, 4, 8}, true, true, false);
      add({1, 20, 20, 8, 4, 8}, true, true, false, 20);  // scores beyond the range of exp
      add({1, 160, 160, 8, 4, 8}, true, true, false);    // large enough for threads
      add({1, 3, 9, 4, 2, 20}, true, false, false);      // more keys than queries, heads that are not whole vectors
      add({1, 17, 17, 4, 2, 20}, false, false, true, 0, false);
      dropped({2, 70, 70, 2, 2, 8}, 0.1, 2);
    } else {
      add({2, 5, 5, 2, 2, 8}, true, true, false);
      add({2, 5, 5, 2, 2, 8}, true, true, false, 20);
      add({1, 70, 70, 1, 1, 8}, true, true, false);  // a second tile of 64
      add({1, 160, 160, 8, 4, 8}, true, true, false);
      add({1, 9, 9, 2, 1, 20}, true, true, false);
      add({1, 3, 9, 4, 2, 8}, true, false, false);
      add({1, 17, 17, 2, 1, 16}, false, false, true);
      dropped({2, 5, 5, 2, 2, 8}, 0.1);
      dropped({1, 70, 70, 1, 1, 8}, 0.1, 2);
    }
    add({2, 5, 5, 2, 2, 8}, false, true, true);
    if (!fast) {
      const auto all_ways = [&](const form& f) {
        for (const bool causal : {true, false}) {
          add(f, causal, true, false);
          add(f, causal, false, false);
          add(f, causal, true, true);
        }
      };
      all_ways({1, 17, 17, 2, 1, 16});
      if (full)
        for (const form& f : {form{1, 1, 1, 1, 1, 4}, form{2, 5, 5, 2, 2, 8}, form{1, 16, 16, 1, 1, 16}, form{1, 33, 33, 2, 2, 32},
                              form{1, 64, 64, 2, 2, 64}, form{1, 65, 65, 1, 1, 64}, form{1, 70, 70, 4, 2, 24}, form{1, 40, 40, 1, 1, 128}})
          all_ways(f);
      add({1, 1, 1, 1, 1, 4}, true, true, false);
      add({1, 9, 9, 2, 2, 8}, true, true, false, 0.5);
      add({1, 16, 16, 1, 1, 16}, true, true, false);
      add({1, 33, 33, 2, 2, 32}, true, false, false);
      add({1, 33, 33, 2, 2, 32}, false, true, true);
      add({2, 1, 37, 4, 4, 16}, true, false, false);
      add({1, 65, 65, 1, 1, 64}, true, true, false);
      add({1, 40, 40, 1, 1, 128}, false, true, false);
      add({1, 130, 130, 2, 2, 64}, true, true, false);
      if (full) add({1, 20, 65, 4, 1, 16}, false, false, true);
      dropped({1, 33, 33, 4, 2, 16}, 0.5);
      if (full) dropped({1, 70, 70, 1, 1, 64}, 0.5);
    }
    for (int k = 0; k < (full ? s.repeats() : s.repeats() / 2); ++k) {
      const std::int64_t G = s.size(k, 0, 1, 3), H = G * s.size(k, 1, 1, 2), S = s.size(k, 2, 1, fast ? 9 : full ? 50 : 24);
      if (fast) add({1, S, S, 4, 2, 20}, true, false, false);
      else add({s.size(k, 3, 1, 2), S, S, H, G, 8 * s.size(k, 4, 1, 6)}, k % 2 == 0, k % 3 != 0, k % 4 == 3);
    }
    const auto add_law = [&](int number, const form& f) {
      s.put({.kind = case_kind::law,
             .law = number,
             .attr = with(f, false, false, false),
             .in = {s.x({f.B, f.S, f.H * f.D}), s.x({f.B, f.T, f.G * f.D}), s.x({f.B, f.T, f.G * f.D})}});
    };
    add_law(0, {1, 12, 30, 2, 2, fast ? 8 : 16});
    add_law(1, {1, 2, 2, fast ? 2 : 1, fast ? 2 : 1, 8});
    if (!fast)
      for (const form& f : {form{2, 18, 18, 4, 2, 16}, form{1, 70, 70, 1, 1, 64}}) add_law(1, f);
    s.put({.kind = case_kind::refusal, .attr = with({1, 4, 4, 3, 3, 8}, true, true, false), .in = {s.x({1, 4, 70})}});
    s.put({.kind = case_kind::refusal,
           .attr = with({1, 4, 4, 2, 2, 8}, true, false, false),
           .in = {s.x({1, 9, 16}), s.x({1, 4, 16}), s.x({1, 4, 16})}});
    windows(s);
  }

  /// Windows of one key, within a tile, of a whole tile, of no multiple of a tile, and of all keys and more.
  static void windows(case_sink& s) {
    const auto add = [&](const form& f, std::int64_t window, bool packed, bool masked = false, double dropout = 0) {
      test_case c;
      c.attr.i = {f.H, f.G, 1, packed ? 1 : 0, masked ? 1 : 0, window};
      c.attr.f[1] = dropout;
      c.scalars.seed = 7;
      c.scalars.counter = 2;
      if (packed) c.in = {s.x({f.B, f.S, (f.H + 2 * f.G) * f.D})};
      else c.in = {s.x({f.B, f.S, f.H * f.D}), s.x({f.B, f.T, f.G * f.D}), s.x({f.B, f.T, f.G * f.D})};
      if (masked) c.in.push_back(s.x({f.B, f.T}, 0, 0, &generator_of<generators::key_mask>));
      s.put(c, true);
    };
    for (const std::int64_t window : {1, 20, 32, 64, 100, 160}) add({1, 160, 160, 8, 4, 8}, window, true);
    add({1, 3, 130, 4, 2, 16}, 40, false);  // nobody sees the first keys
    add({2, 70, 70, 2, 2, 8}, 33, true, false, 0.1);
    if (s.how() != strength::fast) {
      for (const std::int64_t window : {1, 3, 5, 9}) add({2, 5, 5, 2, 2, 8}, window, true);
      for (const std::int64_t window : {1, 63, 64, 65, 129, 130}) add({1, 130, 130, 2, 2, 64}, window, true);
      add({2, 33, 33, 2, 2, 32}, 16, true, true);
      add({1, 90, 200, 2, 1, 16}, 48, false, true);
      add({1, 40, 75, 2, 1, 24}, 31, false);
      add({1, 70, 70, 1, 1, 64}, 20, true, false, 0.5);
    }
    attributes a;
    a.i = {2, 2, 0, 1, 0, 4};
    s.put({.kind = case_kind::refusal, .attr = a, .in = {s.x({1, 6, 24})}});  // not causal
    a.i[2] = 1, a.i[5] = -1;
    s.put({.kind = case_kind::refusal, .attr = a, .in = {s.x({1, 6, 24})}});
  }
};

}  // namespace isotope::conform
