#pragma once
/// Samples one token from the logits of the last position: a pure function of logits, options and a random counter.
#include <isotope/core/philox.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace isotope::train {

struct sample_options {
  double temperature = 1;  // 0: the most likely token, always
  std::int64_t top_k = 0;  // only the k most likely; 0: all
  double top_p = 1;        // only the fewest most likely whose probabilities reach p
  std::uint64_t seed = 0;
};

/// The Philox stream of sampling; it is far from the streams of a plan's ops, which count up from 0.
inline constexpr std::uint32_t sampling_stream = 0xFFFFFFF0u;

/// Draws tokens, and keeps its memory from call to call.
class sampler {
 public:
  /// As `sample` below.
  std::int32_t operator()(std::span<const float> logits, const sample_options& options, std::uint64_t position) {
    kept_.clear();
    kept_.reserve(logits.size());
    for (std::size_t i = 0; i < logits.size(); ++i)
      if (logits[i] > -std::numeric_limits<float>::infinity()) kept_.push_back({double(logits[i]), std::int32_t(i)});
    if (kept_.empty()) return 0;
    if (!(options.temperature > 0)) return std::min_element(kept_.begin(), kept_.end(), likelier)->token;

    if (options.top_k > 0 && std::size_t(options.top_k) < kept_.size()) {
      std::nth_element(kept_.begin(), kept_.begin() + (options.top_k - 1), kept_.end(), likelier);
      kept_.resize(std::size_t(options.top_k));
    }
    std::sort(kept_.begin(), kept_.end(), likelier);

    const double top = kept_.front().weight;
    double total = 0;
    for (candidate& c : kept_) {
      // An infinite top logit takes all, because inf - inf would be NaN.
      c.weight = c.weight == top ? 1.0 : std::exp((c.weight - top) / options.temperature);
      total += c.weight;
    }
    if (options.top_p < 1) {
      double reached = 0;
      std::size_t n = 0;
      while (n < kept_.size() && (n == 0 || reached < options.top_p * total)) reached += kept_[n++].weight;
      kept_.resize(n);
      total = reached;
    }

    const double u = double(unit_interval(philox(options.seed, position, 0, sampling_stream)[0])) * total;
    double sum = 0;
    for (const candidate& c : kept_)
      if ((sum += c.weight) > u) return c.token;
    return kept_.back().token;
  }

 private:
  struct candidate {
    double weight = 0;
    std::int32_t token = 0;
  };
  static bool likelier(const candidate& a, const candidate& b) { return a.weight != b.weight ? a.weight > b.weight : a.token < b.token; }
  std::vector<candidate> kept_;
};

/// p[i] = exp(logits[i] / T - max) / sum over the kept tokens;  the result is the smallest i (most likely first) with p[0] + ... + p[i] > u, where u
/// = unit_interval(philox(seed, position, 0, sampling_stream)[0]).
///
/// The kept tokens are the top_k most likely, then of these the fewest whose probabilities (among them) reach top_p: at least one. Equal logits rank
/// by token, the smaller first. NaN logits are never drawn.
/// @param logits   (V), V >= 1
/// @param position number of tokens drawn before with this seed
/// @return         a token in [0, V); 0 if every logit is NaN or -inf
/// Source: Fan et al. 2018, arXiv:1805.04833 (top-k); Holtzman et al. 2020, arXiv:1904.09751 (top-p).
inline std::int32_t sample(std::span<const float> logits, const sample_options& options, std::uint64_t position) {
  return sampler()(logits, options, position);
}

}  // namespace isotope::train
