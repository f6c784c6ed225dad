#pragma once
/// A sequence of a batcher in host memory, and the part of a KV cache that belongs to it.
#include <isotope/backend/session/session_memory.hpp>
#include <isotope/core/error.hpp>
#include <isotope/core/precision.hpp>
#include <isotope/op/sample.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace isotope {

/// What batcher::save gives and batcher::restore takes. Keys and values are in the device's own format, so that nothing is rounded. It belongs to the weights of the
/// batcher that made it, which nothing here can check.
struct sequence_snapshot {
  std::vector<std::int64_t> format;                   // of the caches: cache_states::format
  std::vector<std::int32_t> tokens;                   // of the text, as many as the model sees
  std::size_t read = 0;                               // tokens whose keys and values are in `cache`
  std::vector<std::byte> cache;                       // for each cache and each head (read, D)
  bool live = false;                                  // the request goes on; else the snapshot is only good as a prefix
  bool draws = false;                                 // the prompt is read
  std::int64_t wanted = 0, drawn = 0;                 // tokens of the request
  std::vector<std::int32_t> ends;                     // as batch_request::ends
  std::array<float, op::sample::numbers> sampling{};  // rows of the operands of op::sample
  std::array<std::int32_t, op::sample::keys> key{};
};

/// Parts of the states of a session in the device's own format, so that what is written back has the same bits. No run of the session may be in flight.
template <class Session> class state_parts {
 public:
  explicit state_parts(Session& s) : session_(s) {}

  /// Notes to copy bytes of state k, from byte `first` on, by the next `read`.
  void want(std::size_t k, std::int64_t first, std::span<std::byte> to) {
    if (!to.empty()) pieces_.push_back({place(k, first), to});
  }
  /// @error as the device reports
  result<void> read() { return session_.queue().download(session_.arena(), std::exchange(pieces_, {})); }
  /// @error as the device reports
  result<void> write(std::size_t k, std::int64_t first, std::span<const std::byte> from) {
    return from.empty() ? result<void>{} : session_.queue().upload(session_.arena(), place(k, first), from);
  }

 private:
  Session& session_;
  std::vector<memory_piece> pieces_;

  std::int64_t place(std::size_t k, std::int64_t first) const {
    const operand& o = session_.states()[k].where;
    return session_.layout()[o.region] + o.at + first;
  }
};

/// The states of a decoder that hold keys or values, (slots, G, T, D): those of rank 4.
template <class Session> class cache_states {
 public:
  explicit cache_states(Session& s) : parts_(s) {
    for (std::size_t k = 0; k < s.states().size(); ++k)
      if (const operand& o = s.states()[k].where; o.dims.rank == 4) all_.push_back({k, o.dims[1], o.dims[2], o.dims[3] * size_of(o.type)});
  }
  /// Numbers that differ where a part of one session's caches does not fit into those of another: of each cache G, T and the bytes of a row.
  std::vector<std::int64_t> format() const {
    std::vector<std::int64_t> f;
    for (const cache& c : all_) f.insert(f.end(), {c.groups, c.positions, c.row});
    return f;
  }
  /// The first `rows` positions of a slot. @error as the device reports
  result<std::vector<std::byte>> read(std::size_t slot, std::size_t rows) {
    std::int64_t bytes = 0;
    for (const cache& c : all_) bytes += c.groups * std::int64_t(rows) * c.row;
    std::vector<std::byte> out(static_cast<std::size_t>(bytes));
    std::int64_t to = 0;
    for (const cache& c : all_)
      for (std::int64_t g = 0, n = std::int64_t(rows) * c.row; g < c.groups; ++g, to += n)
        parts_.want(c.state, c.first(slot, g), std::span(out).subspan(std::size_t(to), std::size_t(n)));
    if (auto r = parts_.read(); !r) return std::move(r).error();
    return out;
  }
  /// Gives a slot the first `rows` positions of what `read` returned for `saved` positions. @error as the device reports
  result<void> write(std::size_t slot, std::size_t rows, std::span<const std::byte> all, std::size_t saved) {
    std::int64_t from = 0;
    for (const cache& c : all_)
      for (std::int64_t g = 0; g < c.groups; ++g, from += std::int64_t(saved) * c.row)
        if (auto r = parts_.write(c.state, c.first(slot, g), all.subspan(std::size_t(from), rows * std::size_t(c.row))); !r) return r;
    return {};
  }

 private:
  struct cache {
    std::size_t state;
    std::int64_t groups, positions, row;  // row: bytes of a position of a head
    std::int64_t first(std::size_t slot, std::int64_t group) const { return (std::int64_t(slot) * groups + group) * positions * row; }
  };
  state_parts<Session> parts_;
  std::vector<cache> all_;
};

}  // namespace isotope
