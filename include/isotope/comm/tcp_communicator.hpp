#pragma once
/// The operations of a group of processes, as messages between all pairs of ranks.
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "tcp_links.hpp"

namespace isotope::comm {

/// Rank r owns slice r: everybody sends it theirs, it combines them in the order of the ranks, and sends the result to everybody. Each rank sends and receives
/// 2 (n - 1) / n of the bytes of an all_reduce, the least that is possible. Short ranges are sent whole to everybody instead, and every rank combines them:
/// the same bits in half the time.
class tcp_communicator final : public communicator {
 public:
  explicit tcp_communicator(std::unique_ptr<tcp_links> links) : links_(std::move(links)) {}

  int rank() const override { return links_->rank(); }
  int ranks() const override { return links_->ranks(); }

  result<void> all_reduce(std::span<std::byte> x, dtype type, reduction how) override {
    const call c{operation::all_reduce, type, how, 0, x.size(), x.data(), x.data()};
    if (auto r = begin(c, check::numbers(c.what, x, type)); !r) return r;
    const auto size = std::size_t(size_of(type));
    if (x.size() <= short_bytes || ranks() == 1) {
      if (auto r = collect(c, [&](int) { return x; }); !r) return r;
      combine_into(x, type, how);
      return {};
    }
    const std::size_t elems = x.size() / size, most = std::size_t(ranks()) * (slice_bytes / size);
    for (std::size_t at = 0; at < elems; at += most) {
      const auto piece = x.subspan(at * size, std::min(most, elems - at) * size);
      if (auto r = reduce_piece(c, piece, type, how); !r) return r;
    }
    return {};
  }
  result<void> all_gather(std::span<const std::byte> part, std::span<std::byte> whole) override {
    const call c{operation::all_gather, dtype::u8, reduction::sum, 0, part.size(), part.data(), whole.data()};
    if (auto r = begin(c, check::parts(c.what, part, whole, rank(), ranks())); !r) return r;
    const std::size_t n = part.size();
    std::byte* const mine = whole.data() + std::size_t(rank()) * n;
    if (n != 0 && mine != part.data()) std::memcpy(mine, part.data(), n);
    out_.clear(), in_.clear();
    each_other([&](int p) {
      out_.push_back({p, part});
      in_.push_back({p, whole.subspan(std::size_t(p) * n, n)});
    });
    return exchange(c);
  }
  result<void> reduce_scatter(std::span<std::byte> whole, std::span<std::byte> part, dtype type, reduction how) override {
    const call c{operation::reduce_scatter, type, how, 0, whole.size(), whole.data(), part.data()};
    auto fits = check::parts(c.what, part, whole, rank(), ranks());
    if (fits) fits = check::numbers(c.what, part, type);
    if (fits) fits = check::numbers(c.what, whole, type);
    if (auto r = begin(c, std::move(fits)); !r) return r;
    const auto size = std::size_t(size_of(type));
    std::size_t at = 0;
    do {
      const std::size_t bytes = std::min(slice_bytes / size * size, part.size() - at);
      const auto piece_of = [&](int p) { return whole.subspan(std::size_t(p) * part.size() + at, bytes); };
      if (auto r = collect(c, piece_of); !r) return r;
      combine_into(part.subspan(at, bytes), type, how);
      at += bytes;
    } while (at < part.size());
    return {};
  }
  result<void> broadcast(std::span<std::byte> x, int root) override {
    const call c{operation::broadcast, dtype::u8, reduction::sum, root, x.size(), x.data(), x.data()};
    if (auto r = begin(c, check::root(root, ranks())); !r) return r;
    out_.clear(), in_.clear();
    each_other([&](int p) {
      // Those who get nothing of each other still say what they call.
      out_.push_back({p, rank() == root ? std::span<const std::byte>(x) : std::span<const std::byte>()});
      in_.push_back({p, p == root ? x : std::span<std::byte>()});
    });
    return exchange(c);
  }
  result<void> barrier() override {
    const call c;
    if (auto r = begin(c, {}); !r) return r;
    out_.clear(), in_.clear();
    each_other([&](int p) {
      out_.push_back({p, {}});
      in_.push_back({p, {}});
    });
    return exchange(c);
  }
  result<void> state() override { return links_->state(); }
  void abort(failure why) noexcept override { links_->abort({std::move(why), rank()}); }

 private:
  /// Up to here one message to everybody is faster than two rounds of shorter ones.
  static constexpr std::size_t short_bytes = std::size_t(16) << 10;
  /// What a rank combines at once. It bounds the scratch memory to this times the other ranks, and fits into caches and the buffers of connections: with 2^20
  /// and 2^22 an all_reduce of 64 MB between two ranks on one machine took a third longer.
  static constexpr std::size_t slice_bytes = std::size_t(1) << 18;

  std::unique_ptr<tcp_links> links_;
  own_thread thread_;
  std::uint64_t number_ = 0;
  std::uint32_t step_ = 0;
  std::vector<std::byte> scratch_;
  std::vector<const std::byte*> sources_;
  std::vector<std::byte*> targets_;
  std::vector<outgoing> out_;
  std::vector<incoming> in_;

  template <class Each> void each_other(const Each& each) const {
    for (int p = 0; p < ranks(); ++p)
      if (p != rank()) each(p);
  }
  /// A call that does not fit ends the group, since the others wait for it.
  result<void> begin(const call& c, result<void> fits) {
    if (auto here = thread_.check(c.what); !here) return here;
    if (!fits) links_->end({fits.error(), rank()});
    if (links_->ended()) return links_->why();
    ++number_;
    step_ = 0;
    return {};
  }
  result<void> exchange(const call& c) { return links_->exchange(c, number_, step_++, out_, in_); }

  /// Sends piece_of(p) to every rank p, and gets this rank's piece from all: `sources_`, by rank.
  template <class PieceOf> result<void> collect(const call& c, const PieceOf& piece_of) {
    const std::span<std::byte> mine = piece_of(rank());
    const std::size_t n = mine.size(), place = (n + 63) / 64 * 64;
    if (scratch_.size() < place * std::size_t(ranks() - 1)) scratch_.resize(place * std::size_t(ranks() - 1));
    out_.clear(), in_.clear(), sources_.assign(std::size_t(ranks()), mine.data());
    each_other([&](int p) {
      std::byte* const here = scratch_.data() + place * std::size_t(p < rank() ? p : p - 1);
      out_.push_back({p, piece_of(p)});
      in_.push_back({p, std::span(here, n)});
      sources_[std::size_t(p)] = here;
    });
    return exchange(c);
  }
  void combine_into(std::span<std::byte> y, dtype type, reduction how) {
    targets_.assign(1, y.data());
    combine(sources_, targets_, y.size() / std::size_t(size_of(type)), type, how);
  }
  /// all_reduce of a range whose slices are at most slice_bytes.
  result<void> reduce_piece(const call& c, std::span<std::byte> x, dtype type, reduction how) {
    const auto size = std::size_t(size_of(type));
    const auto slice_at = [&](int p) {
      const auto [first, last] = slice_of(x.size() / size, p, ranks());
      return x.subspan(first * size, (last - first) * size);
    };
    if (auto r = collect(c, slice_at); !r) return r;
    const auto mine = slice_at(rank());
    combine_into(mine, type, how);
    out_.clear(), in_.clear();
    each_other([&](int p) {
      out_.push_back({p, mine});
      in_.push_back({p, slice_at(p)});
    });
    return exchange(c);
  }
};

}  // namespace isotope::comm
