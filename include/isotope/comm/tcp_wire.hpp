#pragma once
/// What processes of a group say to each other over TCP, in the byte order of their machines, which must be the same.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "call.hpp"

namespace isotope::comm {

template <std::size_t N> void put_text(std::array<char, N>& to, std::string_view text) {
  to.fill(0);
  text.copy(to.data(), N - 1);
}
template <std::size_t N> std::string text_of(const std::array<char, N>& from) {
  return {from.data(), std::find(from.begin(), from.end(), '\0')};
}

/// Two ranks have two connections: one for numbers, and one that only ever says why the group ended, so that no amount of numbers delays it.
enum class channel : std::uint32_t { data, control };

/// What both ends of a connection say first.
struct hello {
  static constexpr std::array<char, 8> right_magic{'i', 's', 'o', 't', 'o', 'p', 'e', '\n'};
  static constexpr std::uint32_t right_order = 0x0102'0304, this_version = 1;
  static constexpr std::size_t longest_text = 95;

  std::array<char, 8> magic = right_magic;
  std::uint32_t order = right_order;
  std::uint32_t version = this_version;
  std::int32_t ranks = 0, rank = 0;  // of who says it
  std::int32_t to = 0;               // the rank that it takes the other end for
  channel use = channel::data;
  std::array<char, longest_text + 1> run_id{}, group{};
  std::array<std::uint32_t, 8> reserved{};

  bool is_ours() const { return magic == right_magic; }
  /// Why `mine` and `theirs` are not two ends of one group, with both sides' numbers.
  static std::optional<failure> difference(const hello& mine, const hello& theirs, const std::string& at) {
    const auto differ = [&](const std::string& what, const std::string& a, const std::string& b, const char* fix) {
      return fail(errc::version_mismatch,
                  "rank " + std::to_string(theirs.rank) + " has " + what + " " + b + ", and rank " + std::to_string(mine.rank) + " has " +
                      what + " " + a,
                  "tcp, " + at, fix);
    };
    const auto number = [](auto n) { return std::to_string(n); };
    if (theirs.order != mine.order)
      return differ("byte order", number(mine.order), number(theirs.order), "run all ranks on machines of one byte order");
    if (theirs.version != mine.version)
      return differ("protocol version", number(mine.version), number(theirs.version), "run the same program on all ranks");
    if (theirs.run_id != mine.run_id)
      return differ("run id", "'" + text_of(mine.run_id) + "'", "'" + text_of(theirs.run_id) + "'",
                    "end the older run, or give all ranks the same run id");
    if (theirs.ranks != mine.ranks)
      return differ("a number of ranks of", number(mine.ranks), number(theirs.ranks), "give all ranks the same list of addresses");
    if (theirs.group != mine.group)
      return differ("group", "'" + text_of(mine.group) + "'", "'" + text_of(theirs.group) + "'", "give all ranks the same mesh");
    if (theirs.to != mine.rank || theirs.rank != mine.to)
      return fail(errc::version_mismatch,
                  "rank " + number(theirs.rank) + " takes this end for rank " + number(theirs.to) + ", and this end is rank " +
                      number(mine.rank) + " and takes the other for rank " + number(mine.to),
                  "tcp, " + at, "give all ranks the same list of addresses, in the same order");
    return std::nullopt;
  }
};
static_assert(sizeof(hello) == 256 && std::is_trivially_copyable_v<hello>);

/// Before each message of numbers.
struct message_header {
  std::uint64_t number = 0;      // of the operation, counted from 1
  std::uint64_t call_bytes = 0;  // of the call
  std::uint64_t body_bytes = 0;  // that follow
  std::uint32_t step = 0;        // of the operation
  std::uint16_t root = 0;
  std::uint8_t what = 0, format = 0;  // format: type, and 128 for max

  static message_header of(const call& c, std::uint64_t number, std::uint32_t step, std::size_t body) {
    return {number,
            c.bytes,
            body,
            step,
            std::uint16_t(c.root),
            std::uint8_t(c.what),
            std::uint8_t(std::uint8_t(c.type) | (c.how == reduction::max ? 128 : 0))};
  }
  call called() const {
    call c;
    c.what = what <= std::uint8_t(operation::barrier) ? operation(what) : operation::barrier;
    c.type = (format & 127) < dtype_count ? dtype(format & 127) : dtype::u8;
    c.how = (format & 128) != 0 ? reduction::max : reduction::sum;
    c.root = root;
    c.bytes = call_bytes;
    return c;
  }
  bool operator==(const message_header&) const = default;
};
static_assert(sizeof(message_header) == 32 && std::is_trivially_copyable_v<message_header>);

/// The only message of a control connection.
struct last_word {
  enum class kind : std::uint32_t { left, ended };
  kind what = kind::left;
  std::int32_t from = -1;
  std::uint32_t code = 0;
  std::uint32_t reserved = 0;
  std::array<char, 528> text{};
  std::array<char, 160> where{};
  std::array<char, 320> fix{};

  static last_word of(const cause& c) {
    last_word w;
    w.what = kind::ended;
    w.from = c.from;
    w.code = std::uint32_t(c.why.code);
    put_text(w.text, c.why.what);
    put_text(w.where, c.why.where);
    put_text(w.fix, c.why.fix);
    return w;
  }
  cause told() const {
    const auto c = code <= std::uint32_t(errc::stale_handle) ? errc(code) : errc::peer_lost;
    return {fail(c, text_of(text), text_of(where), text_of(fix)), from};
  }
};
static_assert(sizeof(last_word) == 1024 && std::is_trivially_copyable_v<last_word>);

}  // namespace isotope::comm
