#pragma once
/// The order in which an epoch reads windows of tokens: a pure function of seed, epoch and position, so that a position is all there is to
/// save.
#include <algorithm>
#include <bit>
#include <cstdint>

#include <isotope/core/philox.hpp>

namespace isotope::io {

/// The Philox stream of orders, and that of the choice of shards for validation. Ops number their streams from 0, so data uses the other
/// end.
inline constexpr std::uint32_t order_stream = 0xffff'fffeu, split_stream = 0xffff'fffdu;

/// y = E_key(x), and again while y >= n: a permutation of 0 .. n - 1, for x < n.
/// E is a Feistel network of six rounds on 2h bits, h = ceil(bits of n - 1, halved):   (l, r) -> (r, l ^ (Philox(key, r, round) mod 2^h)).
///
/// Source: Luby & Rackoff 1988 (networks of pseudo-random functions); Black & Rogaway 2002, "Ciphers with arbitrary finite domains".
constexpr std::uint64_t permuted(std::uint64_t x, std::uint64_t n, std::uint64_t key) {
  if (n < 2) return x;
  const int half = (static_cast<int>(std::bit_width(n - 1)) + 1) / 2;
  const std::uint64_t mask = (std::uint64_t(1) << half) - 1;
  do {
    std::uint64_t left = x >> half, right = x & mask;
    for (std::uint32_t round = 0; round < 6; ++round) {
      const std::uint64_t next = left ^ (philox(key, right, round, order_stream)[0] & mask);
      left = right;
      right = next;
    }
    x = left << half | right;
  } while (x >= n);
  return x;
}

/// An epoch reads every window once. The windows stand in blocks of `block`, the last of which may be smaller: the whole blocks are read in
/// random order, then the smaller one, and within a block the windows are read in random order. So reads that follow each other lie within
/// `block` windows.
class window_order {
 public:
  /// @param windows  at least 1
  /// @param block    the shuffle window, at least 1
  constexpr window_order(std::uint64_t seed, std::uint64_t epoch, std::uint64_t windows, std::uint64_t block)
      : windows_(windows), block_(std::min(block, windows)), key_(key_of(seed, epoch, 0)) {}

  /// The window at a position of the epoch, below `windows`.
  constexpr std::uint64_t operator()(std::uint64_t position) const {
    const std::uint64_t whole = windows_ / block_, at = position / block_;
    const std::uint64_t b = at < whole ? permuted(at, whole, key_) : whole;
    const std::uint64_t size = b < whole ? block_ : windows_ % block_;
    return b * block_ + permuted(position % block_, size, key_of(key_, b, 1));
  }

 private:
  /// A key for a part of what another key is for.
  static constexpr std::uint64_t key_of(std::uint64_t key, std::uint64_t part, std::uint32_t level) {
    const auto words = philox(key, part, 0x8000'0000u | level, order_stream);  // steps below are the rounds of `permuted`
    return std::uint64_t(words[0]) << 32 | words[1];
  }

  std::uint64_t windows_, block_, key_;
};

}  // namespace isotope::io
