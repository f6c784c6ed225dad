#pragma once
/// Packs sequences of different lengths into runs of few sizes, so that little of a run is left empty.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace isotope {

/// A size of runs: how many tokens and how many sequences fit.
struct token_bucket {
  int tokens = 0, sequences = 0;
};

/// Sizes below `most`, from 8 tokens on: each is 8 tokens larger than the one before, or up to a quarter, so that a run which takes the smallest
/// size that it fits has few empty rows. They are multiples of 8, of 16 from 64 on, and of 32 from 128 on: whole vectors of a processor.
inline std::vector<int> fine_sizes(int most) {
  std::vector<int> sizes;
  for (int n = 8; n < most; n += std::max(8, int(std::bit_floor(unsigned(n)) / 4))) sizes.push_back(n);
  return sizes;
}

/// A run: the sequences order[first, last) of a packing, in a bucket.
struct packed_run {
  std::size_t bucket = 0, first = 0, last = 0;
};

/// Distributes sequences over runs: sorted by length, the longest first, each run takes the bucket that costs least for each token in it. A sequence of no
/// tokens is in no run. The memory grows with the largest number of sequences and is kept.
class token_packing {
 public:
  /// @param buckets   in ascending order of tokens; each has room for one sequence or more
  /// @param overhead  what a run costs besides its bucket, in tokens
  explicit token_packing(std::vector<token_bucket> buckets, int overhead = 16) : buckets_(std::move(buckets)), overhead_(overhead) {}

  const std::vector<token_bucket>& buckets() const { return buckets_; }

  /// @param lengths  tokens of each sequence, at most those of the largest bucket
  void pack(std::span<const std::int32_t> lengths) {
    order_.resize(lengths.size());
    std::iota(order_.begin(), order_.end(), std::size_t(0));
    std::sort(order_.begin(), order_.end(),
              [&](std::size_t a, std::size_t b) { return lengths[a] != lengths[b] ? lengths[a] > lengths[b] : a < b; });
    while (!order_.empty() && lengths[order_.back()] <= 0) order_.pop_back();
    before_.assign(1, 0);
    for (const std::size_t k : order_) before_.push_back(before_.back() + lengths[k]);
    runs_.clear();
    for (std::size_t first = 0; first < order_.size(); first = runs_.back().last) runs_.push_back(best_from(first));
  }
  /// The sequences by length, descending.
  std::span<const std::size_t> order() const { return order_; }
  std::span<const packed_run> runs() const { return runs_; }

 private:
  std::vector<token_bucket> buckets_;
  std::int64_t overhead_;
  std::vector<std::size_t> order_;
  std::vector<std::int64_t> before_;  // tokens of the sequences before each one in `order_`
  std::vector<packed_run> runs_;

  packed_run best_from(std::size_t first) const {
    packed_run best;
    std::int64_t filled = 0, cost = 1;
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      const std::int64_t end = before_[first] + buckets_[b].tokens;
      auto last = std::size_t(std::upper_bound(before_.begin(), before_.end(), end) - before_.begin()) - 1;
      last = std::min(last, first + std::size_t(buckets_[b].sequences));
      const std::int64_t tokens = before_[last] - before_[first], costs = buckets_[b].tokens + overhead_;
      if (tokens == 0 || tokens * cost < filled * costs) continue;
      best = {b, first, last};
      filled = tokens;
      cost = costs;
    }
    return best;
  }
};

}  // namespace isotope
