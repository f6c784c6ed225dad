#pragma once
/// Draws tokens by the definition: candidates are sorted, and cut one rule after another.
#include <algorithm>
#include <limits>

#include <isotope/core/philox.hpp>
#include <isotope/op/sample.hpp>

#include <isotope/kernels/cpu/reference/body/access.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::sample, P, kernels::reference> {
  struct candidate {
    double x = 0;
    std::int64_t token = 0;
    bool operator<(const candidate& o) const { return x != o.x ? x > o.x : token < o.token; }
  };
  /// The candidates of a row.
  static constexpr std::int64_t scratch(const step_shapes& s) { return std::int64_t(sizeof(candidate)) * s.in[3][1]; }

  static void run(const launch& l) {
    const view &history = l.out[0], &recent = l.out[1], &position = l.out[2], &draw = l.in[4];
    const std::int64_t T = history.dims[1], K = recent.dims[0], V = l.in[3].dims[1];
    for (std::int64_t n = 0; n < position.dims[0]; ++n) {
      const std::int64_t p = int_at(position, n * position.strides[0]);
      if (int_at(draw, n * draw.strides[0]) < 0 || p < 0 || p >= T) continue;
      auto* const all = static_cast<candidate*>(l.scratch);
      for (std::int64_t t = 0; t < V; ++t) all[t] = {reference::load(l.in[3], n * l.in[3].strides[0] + t * l.in[3].strides[1]), t};
      const double token = double(drawn(l, n, p, all, V));
      reference::store(position, n * position.strides[0], double(p + 1));
      if (p + 1 < T) reference::store(history, n * history.strides[0] + (p + 1) * history.strides[1], token);
      for (std::int64_t k = K - 1; k > 0; --k)
        reference::store(recent, k * recent.strides[0] + n * recent.strides[1],
                         reference::load(recent, (k - 1) * recent.strides[0] + n * recent.strides[1]));
      reference::store(recent, n * recent.strides[1], token);
    }
  }

 private:
  static std::int32_t int_at(const view& v, std::int64_t i) { return v.as<const std::int32_t>()[i]; }

  static std::int64_t drawn(const launch& l, std::int64_t n, std::int64_t p, candidate* all, std::int64_t V) {
    using is = op::sample;
    const view &history = l.out[0], &sampling = l.in[5], &key = l.in[6];
    const auto number = [&](is::number_column c) { return reference::load(sampling, n * sampling.strides[0] + c * sampling.strides[1]); };
    const auto word = [&](is::key_column c) { return std::uint32_t(int_at(key, n * key.strides[0] + c * key.strides[1])); };
    if (const double r = number(is::repetition_penalty); r > 0 && r != 1)
      for (std::int64_t i = 0; i <= p; ++i) {
        const std::int64_t t = int_at(history, n * history.strides[0] + i * history.strides[1]);
        if (t < 0 || t >= V) continue;
        const double x = reference::load(l.in[3], n * l.in[3].strides[0] + t * l.in[3].strides[1]);
        all[t].x = reference::rounded(sampling.type, x < 0 ? r * x : x / r);
      }
    constexpr double infinity = std::numeric_limits<double>::infinity();
    candidate* end = std::remove_if(all, all + V, [](const candidate& c) { return !(c.x > -infinity); });
    if (end == all) return 0;
    const double temperature = number(is::temperature);
    if (!(temperature > 0)) return std::min_element(all, end)->token;
    std::sort(all, end);
    if (const auto k = std::int64_t(std::int32_t(word(is::top_k))); k > 0 && k < end - all) end = all + k;
    const double top = all->x;
    const auto z = [&](const candidate& c) { return c.x == top ? 0.0 : (c.x - top) / temperature; };  // also where the largest is infinite
    if (const double least = number(is::top_p); least < 1) {
      double total = 0, reached = 0;
      for (const candidate* c = all; c != end; ++c) total += std::exp(z(*c));
      candidate* kept = all;
      while (kept != end && (kept == all || reached < least * total)) reached += std::exp(z(*kept++));
      end = kept;
    }
    if (const double least = std::fmin(number(is::min_p), 1); least > 0)
      end = std::find_if(all, end, [&](const candidate& c) { return !(std::exp(z(c)) >= least); });
    const std::uint64_t seed = word(is::seed_low) | std::uint64_t(word(is::seed_high)) << 32;
    double best = -infinity;
    std::int64_t token = V;
    for (const candidate* c = all; c != end; ++c) {
      const auto words = philox(seed, std::uint64_t(c->token) / 4, std::uint32_t(p + 1) + word(is::offset), is::stream);
      const double score = z(*c) - std::log(-std::log1p(-(double(words[std::size_t(c->token % 4)]) + 0.5) * 0x1p-32));
      if (token == V || score > best || (score == best && c->token < token)) best = score, token = c->token;
    }
    return token;
  }
};

}  // namespace isotope::cpu
