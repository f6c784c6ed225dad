#pragma once
/// How next tokens are drawn from logits: the options of a request, and on the host what op::sample draws on the device.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <isotope/core/philox.hpp>
#include <isotope/op/sample.hpp>

namespace isotope {

struct sampling_options {
  float temperature = 1;         // 0: the most likely token, always
  std::int32_t top_k = 0;        // only the k most likely; 0: all
  float top_p = 1;               // only the fewest most likely whose probabilities reach p
  float min_p = 0;               // only tokens with at least this part of the probability of the most likely one
  float repetition_penalty = 1;  // divides positive logits of tokens that the text has, and multiplies negative ones
  std::uint64_t seed = 0;
};

/// The rows of a request in the operands `sampling` and `key` of op::sample.
inline void write_options(const sampling_options& o, std::int32_t offset, std::span<float, op::sample::numbers> sampling,
                          std::span<std::int32_t, op::sample::keys> key) {
  sampling[op::sample::temperature] = o.temperature;
  sampling[op::sample::top_p] = o.top_p;
  sampling[op::sample::min_p] = o.min_p;
  sampling[op::sample::repetition_penalty] = o.repetition_penalty;
  key[op::sample::seed_low] = std::int32_t(std::uint32_t(o.seed));
  key[op::sample::seed_high] = std::int32_t(std::uint32_t(o.seed >> 32));
  key[op::sample::top_k] = o.top_k;
  key[op::sample::offset] = offset;
}

/// The token that op::sample draws, by its definition in f64.
/// @param logits   (V), V >= 1
/// @param history  the tokens of the text
/// @param counter  the place of the token in its text: the position of the operand, and the offset
inline std::int32_t drawn_token(std::span<const float> logits, std::span<const std::int32_t> history, const sampling_options& o,
                                std::uint32_t counter) {
  struct candidate {
    double x;
    std::int32_t token;
  };
  std::vector<candidate> kept;
  std::vector<char> seen(logits.size(), 0);
  for (const std::int32_t t : history)
    if (t >= 0 && std::size_t(t) < logits.size()) seen[std::size_t(t)] = 1;
  for (std::size_t t = 0; t < logits.size(); ++t) {
    float x = logits[t];
    if (seen[t] != 0 && o.repetition_penalty > 0) x = x < 0 ? x * o.repetition_penalty : x / o.repetition_penalty;
    if (x > -std::numeric_limits<float>::infinity()) kept.push_back({double(x), std::int32_t(t)});
  }
  if (kept.empty()) return 0;
  std::sort(kept.begin(), kept.end(), [](const candidate& a, const candidate& b) { return a.x != b.x ? a.x > b.x : a.token < b.token; });
  if (!(o.temperature > 0)) return kept[0].token;
  if (o.top_k > 0 && std::size_t(o.top_k) < kept.size()) kept.resize(std::size_t(o.top_k));
  const double top = kept[0].x;
  const auto z = [&](const candidate& c) { return c.x == top ? 0.0 : (c.x - top) / double(o.temperature); };
  if (o.top_p < 1) {
    double total = 0, reached = 0;
    for (const candidate& c : kept) total += std::exp(z(c));
    std::size_t n = 0;
    while (n < kept.size() && (n == 0 || reached < double(o.top_p) * total)) reached += std::exp(z(kept[n++]));
    kept.resize(n);
  }
  double best = 0;
  std::int32_t token = -1;
  for (const candidate& c : kept) {
    if (o.min_p > 0 && !(std::exp(z(c)) >= std::min(double(o.min_p), 1.0))) continue;
    const auto words = philox(o.seed, std::uint64_t(c.token) / 4, counter, op::sample::stream);
    const double e = -std::log1p(-(double(words[std::size_t(c.token % 4)]) + 0.5) * 0x1p-32), score = z(c) - std::log(e);
    if (token < 0 || score > best || (score == best && c.token < token)) best = score, token = c.token;
  }
  return token;
}

}  // namespace isotope
