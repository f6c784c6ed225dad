#pragma once
/// Where barriers or edges are needed between dispatches, and an independent check that none is missing.
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace isotope {

/// Bytes of device memory that a dispatch reads or writes.
struct byte_range {
  std::uint64_t first = 0, end = 0;
  byte_range() = default;
  byte_range(std::uint64_t at, std::int64_t bytes) : first(at), end(at + std::uint64_t(bytes)) {}
  std::int64_t bytes() const { return std::int64_t(end - first); }
  bool overlaps(const byte_range& o) const { return first < o.end && o.first < end; }
};

/// A dispatch lists all bytes that it touches in `reads` and `writes`. Barriers are derived from them, so a range that is left out is a race.
template <class D>
concept Dispatch = requires(const D& d) {
  { d.reads } -> std::convertible_to<const std::vector<byte_range>&>;
  { d.writes } -> std::convertible_to<const std::vector<byte_range>&>;
};
/// The number of bytes in the ranges that a dispatch reads and writes.
template <Dispatch D> std::int64_t bytes_of(const D& d) {
  std::int64_t n = 0;
  for (const byte_range& r : d.reads) n += r.bytes();
  for (const byte_range& r : d.writes) n += r.bytes();
  return n;
}

/// Element i is 1 if a barrier is needed before dispatch i: it reads or writes bytes written since the last barrier, or writes bytes read since then.
/// Barriers are global, so the sets of such bytes are empty after each.
template <Dispatch D> std::vector<std::uint8_t> plan_barriers(std::span<const D> all) {
  std::vector<std::uint8_t> before(all.size(), 0);
  std::vector<byte_range> reads, writes;
  const auto touches = [](const std::vector<byte_range>& a, const std::vector<byte_range>& b) {
    for (const auto& x : a)
      for (const auto& y : b)
        if (x.overlaps(y)) return true;
    return false;
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    const D& d = all[i];
    if (touches(d.reads, writes) || touches(d.writes, writes) || touches(d.writes, reads)) {
      before[i] = 1;
      reads.clear();
      writes.clear();
    }
    reads.insert(reads.end(), d.reads.begin(), d.reads.end());
    writes.insert(writes.end(), d.writes.begin(), d.writes.end());
  }
  return before;
}
template <Dispatch D> std::vector<std::uint8_t> plan_barriers(const std::vector<D>& all) { return plan_barriers(std::span<const D>(all)); }

/// Two dispatches that touch the same bytes without a barrier between them.
struct hazard {
  std::size_t first = 0, second = 0;
  const char* kind = "";  // read after write, write after read, write after write
};
/// Compares every pair of dispatches: if both touch the same bytes and one of them writes, there must be a barrier between them.
template <Dispatch D> std::vector<hazard> find_hazards(const std::vector<D>& all, std::span<const std::uint8_t> before) {
  std::vector<std::size_t> epoch(all.size(), 0);  // barriers seen up to dispatch i
  for (std::size_t i = 0; i < all.size(); ++i) epoch[i] = (i == 0 ? 0 : epoch[i - 1]) + (before[i] != 0 ? 1 : 0);
  std::vector<hazard> found;
  const auto meet = [](const std::vector<byte_range>& a, const std::vector<byte_range>& b) {
    for (const auto& x : a)
      for (const auto& y : b)
        if (x.first < y.end && y.first < x.end) return true;
    return false;
  };
  for (std::size_t j = 0; j < all.size(); ++j)
    for (std::size_t i = 0; i < j; ++i) {
      if (epoch[i] != epoch[j]) continue;
      if (meet(all[i].writes, all[j].reads)) found.push_back({i, j, "read after write"});
      else if (meet(all[i].writes, all[j].writes)) found.push_back({i, j, "write after write"});
      else if (meet(all[i].reads, all[j].writes)) found.push_back({i, j, "write after read"});
    }
  return found;
}

/// Element i lists the earlier dispatches that dispatch i waits for, where each waits for its own list instead of a barrier. What follows from other entries is
/// left out: if 2 waits for 1 and 1 for 0, then 2 waits for 0 without naming it.
using dispatch_edges = std::vector<std::vector<std::uint32_t>>;

/// Whether the order of two dispatches matters: both touch the same bytes, and one of them writes.
template <Dispatch D> bool conflict(const D& a, const D& b) {
  const auto meet = [](const std::vector<byte_range>& x, const std::vector<byte_range>& y) {
    for (const auto& p : x)
      for (const auto& q : y)
        if (p.overlaps(q)) return true;
    return false;
  };
  return meet(a.writes, b.reads) || meet(a.writes, b.writes) || meet(a.reads, b.writes);
}
/// The fewest edges under which every two dispatches in conflict run in their order, and with them those for which also(earlier, later) is true.
template <Dispatch D, class Also> requires std::predicate<const Also&, const D&, const D&>
dispatch_edges plan_edges(const std::vector<D>& all, const Also& also) {
  dispatch_edges waits(all.size());
  std::vector<std::vector<bool>> before(all.size());  // before[i][k]: i runs after k
  for (std::size_t i = 0; i < all.size(); ++i) {
    before[i].assign(i, false);
    for (std::size_t k = i; k-- > 0;) {
      if (before[i][k] || (!also(all[k], all[i]) && !conflict(all[k], all[i]))) continue;
      waits[i].push_back(std::uint32_t(k));
      before[i][k] = true;
      for (std::size_t j = 0; j < k; ++j)
        if (before[k][j]) before[i][j] = true;
    }
  }
  return waits;
}
template <Dispatch D> dispatch_edges plan_edges(const std::vector<D>& all) {
  return plan_edges(all, [](const D&, const D&) { return false; });
}
/// Compares every pair of dispatches: if their order matters, the later one must wait for the earlier one, through any number of others.
template <Dispatch D> std::vector<hazard> find_hazards(const std::vector<D>& all, const dispatch_edges& waits) {
  std::vector<hazard> found;
  std::vector<std::uint8_t> reached;
  std::vector<std::uint32_t> open;
  for (std::size_t j = 0; j < all.size(); ++j) {
    reached.assign(j + 1, 0);
    open.assign(1, std::uint32_t(j));
    while (!open.empty()) {
      const auto at = open.back();
      open.pop_back();
      for (const auto k : waits[at])
        if (reached[k] == 0) {
          reached[k] = 1;
          open.push_back(k);
        }
    }
    for (std::size_t i = 0; i < j; ++i)
      if (reached[i] == 0 && conflict(all[i], all[j])) found.push_back({i, j, "no path between two dispatches that touch the same bytes"});
  }
  return found;
}

}  // namespace isotope
