#pragma once
/// Device memory for tensors that come and go one at a time, where no plan says in advance which are alive together.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "../backend/queue/queue.hpp"
#include "../plan/layout.hpp"

namespace isotope {

/// Hands out blocks of 256 bytes and more from allocations that grow with what is in use. A block that is given back merges with its free neighbours,
/// and the smallest free block that is large enough is taken first, so that a loop over the same ops allocates only in its first round.
template <Queue Q> class device_heap {
 public:
  /// Bytes [at, at + bytes) of an allocation.
  struct block {
    std::size_t allocation = 0;
    std::int64_t at = 0, bytes = 0;
  };
  static constexpr std::int64_t first_allocation = 1 << 20, largest_step = 64 << 20;

  /// @error out_of_memory
  result<block> take(Q& queue, std::int64_t bytes) {
    const std::int64_t n = std::max(plan_detail::blocks(bytes), std::int64_t(1)) * block_bytes;
    auto best = free_.end();
    for (auto i = free_.begin(); i != free_.end(); ++i)
      if (i->second >= n && (best == free_.end() || i->second < best->second)) best = i;
    if (best == free_.end()) {
      const std::int64_t grown = std::clamp(bytes_, first_allocation, largest_step);
      auto m = queue.allocate(std::max(n, grown), memory_use::device, "isotope tensors");
      if (!m) return m.error();
      bytes_ += std::max(n, grown);
      best = free_.emplace(place_of{allocations_.size(), 0}, std::max(n, grown)).first;
      allocations_.push_back(*std::move(m));
      lowest_ = std::min(lowest_, allocations_.back().address());
    }
    const auto [at, room] = *best;
    free_.erase(best);
    if (room > n) free_.emplace(place_of{at.first, at.second + n}, room - n);
    return block{at.first, at.second, n};
  }
  void give(const block& b) {
    auto here = free_.emplace(place_of{b.allocation, b.at}, b.bytes).first;
    if (const auto next = std::next(here); next != free_.end() && touches(here, next)) {
      here->second += next->second;
      free_.erase(next);
    }
    if (here == free_.begin()) return;
    if (const auto before = std::prev(here); touches(before, here)) {
      before->second += here->second;
      free_.erase(here);
    }
  }

  typename Q::memory& memory_of(const block& b) { return allocations_[b.allocation]; }
  std::uint64_t address(const block& b) const { return allocations_[b.allocation].address() + std::uint64_t(b.at); }
  /// The lowest address of an allocation; the largest number while there is none.
  std::uint64_t lowest() const { return lowest_; }
  /// Bytes taken from the device.
  std::int64_t bytes() const { return bytes_; }

 private:
  using place_of = std::pair<std::size_t, std::int64_t>;  // allocation, offset
  using free_map = std::map<place_of, std::int64_t>;      // to the length
  std::vector<typename Q::memory> allocations_;
  free_map free_;
  std::int64_t bytes_ = 0;
  std::uint64_t lowest_ = std::numeric_limits<std::uint64_t>::max();

  static bool touches(typename free_map::iterator a, typename free_map::iterator b) {
    return a->first.first == b->first.first && a->first.second + a->second == b->first.second;
  }
};

}  // namespace isotope
