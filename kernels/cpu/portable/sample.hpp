#pragma once
/// Draws tokens from logits, some rows per task. Without top_k, top_p and min_p it is bound by Philox: the exponent of a random word
/// bounds the noise of its token, so few tokens need logarithms. Otherwise candidates are sorted as far as the rules read them. Weights are
/// f32, scores f64.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include <isotope/core/philox.hpp>
#include <isotope/core/philox_words.hpp>
#include <isotope/kernels/cpu/body/programs.hpp>
#include <isotope/kernels/cpu/math/weight.hpp>
#include <isotope/kernels/cpu/rows/rows.hpp>
#include <isotope/op/sample.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

class sample {
 public:
  static constexpr std::int64_t scratch(const step_shapes& s) {
    return (4 + std::int64_t(sizeof(candidate))) * s.in[3][1] * smaller(divide_up(s.in[3][0], rows_each), max_workers);
  }
  static void run(const launch& l) {
    const view &history = l.out[0], &recent = l.out[1], &logits = l.in[3];
    const std::int64_t N = logits.dims[0], V = logits.dims[1], T = history.dims[1], K = recent.dims[0];
    auto* const position = l.out[2].as<std::int32_t>();
    for_tasks(l, divide_up(N, rows_each), double(N * V) * 2.0, [&](std::int64_t task, int slice) {
      auto* const all = static_cast<candidate*>(l.scratch) + slice * V;
      float* const own = static_cast<float*>(l.scratch) + 2 * V * smaller(divide_up(N, rows_each), max_workers) + slice * V;
      for (std::int64_t n = task * rows_each; n < smaller(N, (task + 1) * rows_each); ++n) {
        const std::int64_t p = position[n];
        if (l.in[4].as<const std::int32_t>()[n] < 0 || p < 0 || p >= T) continue;
        auto* const seen = history.as<std::int32_t>() + n * history.strides[0];
        const std::int32_t token = row(l, n, seen, p, all, own);
        position[n] = std::int32_t(p + 1);
        if (p + 1 < T) seen[p + 1] = token;
        auto* const newest = recent.as<std::int32_t>() + n;
        for (std::int64_t k = K - 1; k > 0; --k) newest[k * N] = newest[(k - 1) * N];
        *newest = token;
      }
    });
  }

 private:
  using is = op::sample;
  static constexpr std::int64_t rows_each = 4;
  static constexpr float infinity = std::numeric_limits<float>::infinity();
  struct candidate {
    float x;
    std::int32_t token;
    bool operator<(const candidate& o) const { return x != o.x ? x > o.x : token < o.token; }
  };
  static_assert(sizeof(candidate) == 8);
  /// What Philox draws the noise of a row from.
  struct noise {
    std::uint64_t seed;
    std::uint32_t counter;
    /// -log e of a random word.
    static double of(std::uint32_t word) { return -std::log(-std::log1p(-(double(word) + 0.5) * 0x1p-32)); }
    double of_token(std::int32_t t) const { return of(philox(seed, std::uint64_t(t) / 4, counter, is::stream)[std::size_t(t % 4)]); }
  };

  static std::int32_t row(const launch& l, std::int64_t n, const std::int32_t* seen, std::int64_t p, candidate* all, float* own) {
    const view& logits = l.in[3];
    const std::int64_t V = logits.dims[1];
    const float* const sampling = l.in[5].as<const float>() + n * l.in[5].strides[0];
    const std::int32_t* const key = l.in[6].as<const std::int32_t>() + n * l.in[6].strides[0];
    const float penalty = sampling[is::repetition_penalty];
    const bool penal = penalty > 0 && penalty != 1;
    const float* x = logits.as<const float>() + n * logits.strides[0];
    if (penal || logits.type != dtype::f32) {
      widen_run(logits.data, logits.type, n * logits.strides[0], 1, own, V);
      x = own;
    }
    for (std::int64_t i = 0; penal && i <= p; ++i)
      if (const std::int32_t t = seen[i]; t >= 0 && t < V) {
        const float given = element(logits, n * logits.strides[0] + t);
        own[t] = given < 0 ? penalty * given : given / penalty;
      }
    float top = -infinity;
    for (std::int64_t t = 0; t < V; ++t) top = x[t] > top ? x[t] : top;
    if (top == -infinity) return 0;
    const float temperature = sampling[is::temperature];
    if (!(temperature > 0)) return first_of(x, V, top);
    const noise g{std::uint32_t(key[is::seed_low]) | std::uint64_t(std::uint32_t(key[is::seed_high])) << 32,
                  std::uint32_t(p + 1) + std::uint32_t(key[is::offset])};
    const std::int64_t most = key[is::top_k] > 0 && key[is::top_k] < V ? key[is::top_k] : V;
    const float p_of_kept = sampling[is::top_p], least = sampling[is::min_p] > 1 ? 1.0f : sampling[is::min_p];
    if (most == V && !(p_of_kept < 1) && !(least > 0)) return any(x, V, top, temperature, g);
    candidate* end = all;
    for (std::int64_t t = 0; t < V; ++t)
      if (x[t] > -infinity) *end++ = {x[t], std::int32_t(t)};
    double total = 0;
    const auto w = [&](const candidate& c) { return c.x == top ? 1.0f : weight((c.x - top) / temperature); };
    if (most < end - all) {
      order(all, all + most, end);
      end = all + most;
    }
    if (p_of_kept < 1) {
      for (const candidate* c = all; c != end; ++c) total += double(w(*c));
      end = nucleus(all, end, double(p_of_kept) * total, w);
    }
    double best = 0;
    std::int32_t token = -1;
    for (const candidate* c = all; c != end; ++c) {
      if (least > 0 && !(w(*c) >= least)) continue;
      const double score = z(c->x, top, temperature) + g.of_token(c->token);
      if (token < 0 || score > best || (score == best && c->token < token)) best = score, token = c->token;
    }
    return token;
  }
  static double z(float x, float top, float temperature) { return x == top ? 0.0 : (double(x) - double(top)) / double(temperature); }
  static std::int32_t first_of(const float* x, std::int64_t V, float top) {
    std::int64_t t = 0;
    while (t + 1 < V && x[t] != top) ++t;
    return std::int32_t(t);
  }
  /// Sorts the candidates before `middle`, which are likelier than those after it.
  static void order(candidate* all, candidate* middle, candidate* end) {
    if (16 * (middle - all) < end - all) return std::partial_sort(all, middle, end);
    if (middle != end) std::nth_element(all, middle, end);
    std::sort(all, middle);
  }
  /// The end of the fewest likeliest candidates whose weights reach `wanted`.
  template <class W> static candidate* nucleus(candidate* all, candidate* end, double wanted, const W& w) {
    double reached = 0;
    candidate* kept = all;
    for (std::int64_t some = 64; kept != end; some *= 8) {
      candidate* const sorted = end - kept > some ? kept + some : end;
      order(kept, sorted, end);
      while (kept != sorted && (kept == all || reached < wanted)) reached += double(w(*kept++));
      if (kept != sorted) break;
    }
    return kept;
  }
  /// Draws among all tokens.
  static std::int32_t any(const float* x, std::int64_t V, float top, float temperature, const noise& g) {
    constexpr std::int64_t width = philox_words::width, some = 4 * width;
    double best = -std::numeric_limits<double>::infinity();
    std::int32_t token = -1;
    alignas(64) float padded[some];
    for (std::int64_t first = 0; first < V; first += some) {
      philox_words words;
      for (std::int64_t k = 0; k < width; ++k) {
        words.c0[k] = std::uint32_t(first / 4 + k);
        words.c1[k] = 0;
        words.c2[k] = g.counter;
        words.c3[k] = is::stream;
      }
      words.run(g.seed);
      const float* at = x + first;
      if (V - first < some) {
        std::fill_n(padded, some, -infinity);
        std::copy_n(at, V - first, padded);
        at = padded;
      }
      alignas(64) std::uint32_t drawn[some];
      for (std::int64_t k = 0; k < width; ++k)
        drawn[4 * k] = words.c0[k], drawn[4 * k + 1] = words.c1[k], drawn[4 * k + 2] = words.c2[k], drawn[4 * k + 3] = words.c3[k];
      alignas(64) float bound[some];
      float largest = -infinity;
      for (std::int64_t k = 0; k < some; ++k) {
        // A word w has w + 1/2 >= 2^exponent, so that its noise is at most (32 - exponent) log 2.
        const auto exponent = std::int32_t(std::bit_cast<std::uint32_t>(float(std::int32_t(drawn[k] >> 1)) + 0.5f) >> 23) - 127;
        bound[k] = (at[k] - top) / temperature * 0.999999f + 0.69315f * float(32 - exponent) + 1e-3f;
        largest = bound[k] > largest ? bound[k] : largest;
      }
      if (token >= 0 && !(double(largest) > best) && top < infinity) continue;
      for (std::int64_t k = 0; k < some; ++k) {
        if (!(at[k] > -infinity) || (token >= 0 && !(double(bound[k]) > best) && top < infinity)) continue;
        const double score = z(at[k], top, temperature) + noise::of(drawn[k]);
        if (token < 0 || score > best) best = score, token = std::int32_t(first + k);
      }
    }
    return token;
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable

namespace isotope::cpu {
template <VectorProgram P> struct kernel<op::sample, P, kernels::portable> : portable::sample {};
}  // namespace isotope::cpu
