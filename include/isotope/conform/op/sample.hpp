#pragma once
#include "../../op/sample.hpp"
#include "../philox_by_the_paper.hpp"
#include "../spec.hpp"

#include <algorithm>

namespace isotope::conform {

template <> struct op_spec<op::sample> : spec_basis {
  static constexpr track on = track::integer;
  static constexpr std::array inputs{
      operand_role{"history", holds::integers, false},  operand_role{"recent", holds::integers, false},
      operand_role{"position", holds::integers, false}, operand_role{.name = "logits", .differentiable = false},
      operand_role{"draw", holds::integers, false},     operand_role{"sampling", holds::accumulated, false},
      operand_role{"key", holds::integers, false}};
  static constexpr std::array outputs{result_role{"history", holds::integers, comparison::exact},
                                      result_role{"recent", holds::integers, comparison::exact},
                                      result_role{"position", holds::integers, comparison::exact}};
  static constexpr numeric_policy policy{.sums = "weights in any fixed order, in f32 or wider", .nan = "not drawn"};
  static constexpr std::array boundary{0.0, -infinity, 80.0, -80.0};

  static void reference(const call& c, std::span<answer> y) {
    const array &recent = c.in[1], &position = c.in[2];
    const std::int64_t N = position.dims[0], T = c.in[0].dims[1], K = recent.dims[0];
    for (std::size_t k = 0; k < 3; ++k) {
      y[k].resize(c.in[k].dims.count());
      for (std::int64_t i = 0; i < c.in[k].dims.count(); ++i) y[k].set(i, c.in[k][i]);
    }
    for (std::int64_t n = 0; n < N; ++n) {
      const double p = position[n];
      if (c.in[4][n] < 0 || p < 0 || p >= double(T)) continue;
      const auto token = double(drawn(c, n, std::int64_t(p)));
      y[2].set(n, p + 1);
      if (p + 1 < double(T)) y[0].set(n * T + std::int64_t(p) + 1, token);
      y[1].set(n, token);
      for (std::int64_t k = 1; k < K; ++k) y[1].set(k * N + n, recent[(k - 1) * N + n]);
    }
  }
  /// The token by its definition: each rule by the probabilities of all tokens, not by thresholds.
  static std::int64_t drawn(const call& c, std::int64_t n, std::int64_t p) {
    using is = op::sample;
    const std::int64_t V = c.in[3].dims[1], T = c.in[0].dims[1];
    const auto number = [&](is::number_column k) { return c.in[5][n * is::numbers + k]; };
    const auto key = [&](is::key_column k) { return std::int64_t(c.in[6][n * is::keys + k]); };
    std::vector<double> x(std::size_t(V), 0);
    std::vector<bool> seen(std::size_t(V), false);
    for (std::int64_t i = 0; i <= p; ++i)
      if (const double t = c.in[0][n * T + i]; t >= 0 && t < double(V)) seen[std::size_t(t)] = true;
    std::vector<std::int64_t> order;
    for (std::int64_t t = 0; t < V; ++t) {
      double& v = x[std::size_t(t)];
      v = c.in[3][n * V + t];
      if (const double r = number(is::repetition_penalty); seen[std::size_t(t)] && r > 0) v = nearest(c.on.accum(), v < 0 ? v * r : v / r);
      if (v > -infinity) order.push_back(t);
    }
    if (order.empty()) return 0;
    std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      const double of_a = x[std::size_t(a)], of_b = x[std::size_t(b)];
      return of_a != of_b ? of_a > of_b : a < b;
    });
    const double temperature = number(is::temperature), top = x[std::size_t(order[0])];
    if (!(temperature > 0)) return order[0];
    if (const std::int64_t k = key(is::top_k); k > 0 && k < std::int64_t(order.size())) order.resize(std::size_t(k));
    const auto z = [&](std::int64_t t) { return x[std::size_t(t)] == top ? 0 : (x[std::size_t(t)] - top) / temperature; };
    if (const double mass = number(is::top_p); mass < 1) {
      double total = 0, before = 0;
      for (const std::int64_t t : order) total += std::exp(z(t));
      std::size_t kept = 0;
      for (; kept < order.size() && (kept == 0 || before < mass * total); ++kept) before += std::exp(z(order[kept]));
      order.resize(kept);
    }
    if (const double least = number(is::min_p); least > 0)
      std::erase_if(order, [&](std::int64_t t) { return !(std::exp(z(t)) >= std::min(least, 1.0)); });
    const std::uint64_t seed = std::uint32_t(key(is::seed_low)) | std::uint64_t(std::uint32_t(key(is::seed_high))) << 32;
    std::sort(order.begin(), order.end());
    double best = 0;
    std::int64_t token = -1;
    for (const std::int64_t t : order) {
      const auto words = philox_words(seed, std::uint64_t(t / 4), std::uint32_t(p + 1 + key(is::offset)), is::stream);
      const double score = z(t) - std::log(-std::log1p(-(double(words[std::size_t(t % 4)]) + 0.5) * 0x1p-32));
      if (token < 0 || score > best) best = score, token = t;
    }
    return token;
  }

  /// The numbers of the columns of `sampling`, and top_k, of row n. They change from row to row, so that rows differ in which rules apply.
  static constexpr std::array<double, 5> rules(std::int64_t n) {
    constexpr std::array<std::array<double, 5>, 12> all{{{1, 1, 0, 1, 0},
                                                         {0.8, 1, 0, 1, 3},
                                                         {0, 1, 0, 1, 0},
                                                         {1.5, 0.7, 0, 1, 0},
                                                         {1, 1, 0.25, 1, 0},
                                                         {0.7, 0.9, 0.05, 1.5, 20},
                                                         {1, 1, 0, 3, 0},
                                                         {0, 1, 0, 4, 0},
                                                         {2, 0, 0, 1, 0},
                                                         {1, 0.5, 0, 0.75, 1},
                                                         {0.25, 0.999, 2, 1, 5},
                                                         {4, 0.95, 0.01, 1.25, 1000000}}};
    return all[std::size_t(n) % all.size()];
  }
  /// A case with given numbers: logits in [middle - range, middle + range), of which `ties` leaves few different ones. `likely`: that of each row's newest token is
  /// the largest, so that its penalty decides.
  static test_case given(const case_sink& s, std::int64_t N, std::int64_t V, std::int64_t T, std::int64_t K, double range,
                         bool ties = false, double middle = 0, bool likely = false) {
    test_case c;
    const generator* const whole = &generator_of<generators::whole>;
    c.in = {s.integers({N, T}, 0, double(V), whole),
            s.integers({K, N}, 0, double(V), whole),
            s.integers({N}, 0, double(T), whole),
            s.x({N, V}, -range, range),
            s.integers({N}, 0, 2, whole),
            s.wide({N, op::sample::numbers}),
            s.integers({N, op::sample::keys}, 0, 9, whole)};
    auto numbers = std::make_shared<std::vector<array>>();
    for (const operand_recipe& x : c.in) numbers->push_back(array(x.dims, x.type));
    const auto word = [&](std::int64_t i, std::uint32_t stream) {
      return philox(std::uint64_t(N * 7919 + V), std::uint64_t(i), 5, stream)[0];
    };
    const auto fill = [&](std::size_t k, auto f) {
      array& a = (*numbers)[k];
      for (std::int64_t i = 0; i < a.dims.count(); ++i) a.at[std::size_t(i)] = nearest(a.type, f(i, word(i, std::uint32_t(k))));
    };
    const auto below = [](std::uint32_t w, std::int64_t n) { return double(w % std::uint32_t(n)); };
    fill(0, [&](std::int64_t i, std::uint32_t w) { return i % 9 == 8 ? double(V) + 3 : below(w, V); });
    fill(1, [&](std::int64_t, std::uint32_t w) { return below(w, V); });
    fill(2, [&](std::int64_t i, std::uint32_t w) {
      return i % 7 == 6 ? double(T) : i % 17 == 16 ? -1.0 : i % 5 == 4 ? double(T - 1) : below(w, T);
    });
    fill(3, [&](std::int64_t i, std::uint32_t w) {
      const double p = (*numbers)[2].at[std::size_t(i / V)];
      if (likely && p >= 0 && p < double(T) && (*numbers)[0].at[std::size_t(i / V * T) + std::size_t(p)] == double(i % V))
        return middle + range;
      const double u = middle + range * (2 * double(unit_interval(w)) - 1);
      return ties ? std::floor(u) : u;
    });
    fill(4, [&](std::int64_t i, std::uint32_t) { return i % 11 == 10 ? -1.0 : double(i); });
    fill(5, [&](std::int64_t i, std::uint32_t) { return rules(i / 4)[std::size_t(i % 4)]; });
    fill(6, [&](std::int64_t i, std::uint32_t w) {
      return i % 4 == 2 ? rules(i / 4)[4] : i % 4 == 3 ? below(w, 5) - 2 : std::floor(double(std::int32_t(w)) / 128);
    });
    c.given = std::move(numbers);
    return c;
  }
  static void cases(case_sink& s) {
    s.put(given(s, 24, 50, 9, 1, 4));
    s.put(given(s, 24, 50, 9, 3, 4, true));  // equal logits
    s.put(given(s, 12, 1, 3, 2, 1));
    s.put(given(s, 13, 3, 2, 1, 2));
    s.put(given(s, 36, 257, 40, 8, 6));
    s.put(given(s, 24, 1025, 65, 1, 8));
    s.put(given(s, 24, 2000, 30, 2, 5, true));
    s.put(given(s, 1, 64, 1, 1, 3));
    s.put(given(s, 0, 20, 5, 1, 3));
    s.put(given(s, 48, 100, 100, 4, 3));
    s.put(given(s, 24, 7, 9, 1, 2, false, -3));  // a penalty makes negative logits less likely, too
    s.put(given(s, 24, 100, 9, 1, 3, false, 0, true));
    if (s.how() != strength::fast) s.put(given(s, 12, 50257, 20, 1, 10));
    for (int k = 0; k < s.repeats(); ++k)
      s.put(given(s, s.size(k, 0, 1, 40), s.size(k, 1, 1, 700), s.size(k, 2, 1, 50), s.size(k, 3, 1, 5), 1 + double(s.size(k, 4, 0, 9))));
    const auto refuse = [&](const shape& history, const shape& recent, const shape& logits, std::int64_t columns) {
      const generator* const whole = &generator_of<generators::whole>;
      s.put({.kind = case_kind::refusal,
             .in = {s.integers(history, 0, 3, whole), s.integers(recent, 0, 3, whole), s.integers({4}, 0, 3, whole), s.x(logits),
                    s.integers({4}, 0, 3, whole), s.wide({4, columns}), s.integers({4, 4}, 0, 3, whole)}});
    };
    refuse({4, 9}, {1, 4}, {4, 0}, 4);
    refuse({3, 9}, {1, 4}, {4, 8}, 4);
    refuse({4, 9}, {4, 1}, {4, 8}, 4);
    refuse({4, 9}, {1, 4}, {4, 8}, 3);
  }
};

}  // namespace isotope::conform
