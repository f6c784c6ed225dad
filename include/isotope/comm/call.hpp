#pragma once
/// What one rank asks of its group, the checks that need no other rank, and how failures of a group read on each of its ranks.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "combine.hpp"
#include "communicator.hpp"

namespace isotope::comm {

enum class operation : std::uint8_t { all_reduce, all_gather, reduce_scatter, broadcast, barrier };
constexpr std::string_view name_of(operation o) {
  constexpr std::string_view names[] = {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "barrier"};
  return names[int(o)];
}

/// One call. All ranks must agree on everything but the addresses.
struct call {
  operation what = operation::barrier;
  dtype type = dtype::u8;
  reduction how = reduction::sum;
  int root = 0;
  std::size_t bytes = 0;            // of what a rank gives: x, a part, or a whole to scatter
  const std::byte* from = nullptr;  // what this rank gives
  std::byte* to = nullptr;          // where its result goes

  /// Whether the ranks of both mean the same.
  bool agrees(const call& b) const { return what == b.what && type == b.type && how == b.how && root == b.root && bytes == b.bytes; }
  /// For example "all_reduce (sum of f32, 4096 bytes)".
  std::string text() const {
    std::string s(name_of(what));
    if (what == operation::barrier) return s;
    s += " (";
    if (combines(type)) s += std::string(how == reduction::sum ? "sum" : "max") + " of " + std::string(isotope::name_of(type)) + ", ";
    if (what == operation::broadcast) s += "from rank " + std::to_string(root) + ", ";
    return s + std::to_string(bytes) + " bytes)";
  }
};

namespace check {

inline failure unfit(operation o, std::string what, std::string fix) {
  return fail(errc::invalid_argument, std::string(name_of(o)) + ": " + std::move(what), "communication", std::move(fix));
}
/// Whether x holds whole, aligned numbers that can be combined.
inline result<void> numbers(operation o, std::span<const std::byte> x, dtype t) {
  if (!combines(t))
    return unfit(o, "numbers of type " + std::string(isotope::name_of(t)) + " cannot be combined", "give f32, f64, bf16, f16, i32 or i64");
  const auto size = std::size_t(size_of(t));
  if (x.size() % size != 0 || reinterpret_cast<std::uintptr_t>(x.data()) % size != 0)
    return unfit(o,
                 std::to_string(x.size()) + " bytes at an address that is " +
                     std::to_string(reinterpret_cast<std::uintptr_t>(x.data()) % size) + " bytes past a multiple of " +
                     std::to_string(size) + " are no numbers of type " + std::string(isotope::name_of(t)),
                 "give whole numbers, aligned to their size");
  return {};
}
/// Whether `whole` is `ranks` times as large as `part`, which lies outside it or at its own place in it.
inline result<void> parts(operation o, std::span<const std::byte> part, std::span<const std::byte> whole, int rank, int ranks) {
  if (whole.size() != part.size() * std::size_t(ranks))
    return unfit(o,
                 "a part of " + std::to_string(part.size()) + " bytes for each of " + std::to_string(ranks) +
                     " ranks does not make a whole of " + std::to_string(whole.size()) + " bytes",
                 "give a whole of " + std::to_string(part.size() * std::size_t(ranks)) + " bytes");
  const std::less<const std::byte*> before;
  const bool apart = part.empty() || !before(part.data(), whole.data() + whole.size()) || !before(whole.data(), part.data() + part.size());
  if (!apart && part.data() != whole.data() + std::size_t(rank) * part.size())
    return unfit(o,
                 "the part overlaps the whole, and is not at its own place, " + std::to_string(std::size_t(rank) * part.size()) +
                     " bytes from its begin",
                 "give a part outside the whole, or at its own place");
  return {};
}
inline result<void> root(int root, int ranks) {
  if (root >= 0 && root < ranks) return {};
  return unfit(operation::broadcast, "there is no rank " + std::to_string(root) + " of " + std::to_string(ranks),
               "give a root from 0 to " + std::to_string(ranks - 1));
}
inline result<void> member(int rank, int ranks, std::string_view group) {
  if (ranks >= 1 && rank >= 0 && rank < ranks) return {};
  return fail(errc::invalid_argument, "rank " + std::to_string(rank) + " of " + std::to_string(ranks) + " is asked for", std::string(group),
              ranks < 1 ? "give a group of at least one rank" : "give a rank from 0 to " + std::to_string(ranks - 1));
}

}  // namespace check

/// Why a group ended. A rank that ended it by its own fault, or was told to, is `from`: it gets `why`, and the others get peer_lost with that rank's number and
/// reason. Where `from` is negative, every rank gets `why`.
struct cause {
  failure why;
  int from = -1;

  failure seen_by(int rank) const {
    if (from < 0 || from == rank) return why;
    return fail(errc::peer_lost, "rank " + std::to_string(from) + " ended the group: " + why.what, why.where,
                why.fix.empty() ? "see the output of that rank" : why.fix);
  }
};
inline cause left(int rank, std::string_view group) {
  return {fail(errc::peer_lost, "rank " + std::to_string(rank) + " has left the group", std::string(group),
               "see the output of that rank: it ended, or failed"),
          -1};
}

/// "rank 2" or "ranks 0, 3".
inline std::string ranks_text(std::span<const int> ranks) {
  std::string s = ranks.size() == 1 ? "rank" : "ranks";
  for (std::size_t i = 0; i < ranks.size(); ++i) s += (i == 0 ? " " : ", ") + std::to_string(ranks[i]);
  return s;
}
/// Seconds without useless digits: "5 s", "0.25 s".
inline std::string seconds_text(double s) {
  std::string t = std::to_string(s);
  t.erase(t.find_last_not_of('0') + 1);
  if (t.ends_with('.')) t.pop_back();
  return t + " s";
}

/// The thread that made a communicator, which alone may use it.
class own_thread {
 public:
  bool here() const { return std::this_thread::get_id() == id_; }
  /// @error invalid_argument on any other thread
  result<void> check(operation o) const {
    if (here()) return {};
    return check::unfit(o, "it was called on another thread than the one that joined the group",
                        "use a communicator on the thread that made it");
  }

 private:
  std::thread::id id_ = std::this_thread::get_id();
};

}  // namespace isotope::comm
