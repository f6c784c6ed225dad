#pragma once
/// Whole tensors of a session whose tensors the ranks of a mesh divide between them. All ranks give them at the same time, each from its own thread, and exchange them
/// by the groups of their sessions, in pieces: host memory holds a rank's part of one tensor, and 4 MiB.
#include <isotope/backend/session/rank_groups.hpp>
#include <isotope/core/error.hpp>
#include <isotope/core/tensor_kind.hpp>
#include <isotope/plan/local_plan.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace isotope::train {

/// Optional members of the session of a rank. `groups()` are the rank's groups.
template <class S>
concept HasGroups = requires(const S& s) {
  { s.groups() } -> std::convertible_to<rank_groups>;
};
/// Without these a checkpoint of a mesh cannot be saved. `divides(kind, slot)`: each data index keeps only a part of a tensor; `read_own(kind, slot, out)` reads that
/// part, and 0 for the others.
template <class S>
concept HoldsParts = HasGroups<S> && requires(S& s, std::span<float> out) {
  { s.divides(tensor_kind::parameter, std::size_t{}) } -> std::same_as<bool>;
  { s.read_own(tensor_kind::parameter, std::size_t{}, out) } -> std::same_as<result<void>>;
};

/// Whether a session is that of one of several ranks.
template <class S> bool on_mesh(const S& session) {
  if constexpr (HoldsParts<S>) return !session.groups().mesh().single();
  else return false;
}

namespace detail {

/// What the ranks of a mesh exchange while one of them writes a file. Every exchange also counts the ranks that cannot go on, so that all stop at the same one.
class mesh_exchange {
 public:
  explicit mesh_exchange(const rank_groups& groups) : groups_(groups) {}

  int ranks() const { return groups_.mesh().ranks(); }
  /// Adds up the numbers of all ranks of these groups, as integers, so that a number and zeros keep every bit. The last number counts the ranks that failed, over all
  /// groups.
  /// @error as communicator::all_reduce
  result<void> add(std::span<std::int32_t> bits, bool over_data, bool over_tensor) const {
    for (const auto& [group, all] : {std::pair(groups_.data, over_data), std::pair(groups_.tensor, over_tensor)}) {
      if (group == nullptr) continue;
      const auto some = all ? bits : bits.last(1);
      if (auto r = group->all_reduce(std::as_writable_bytes(some), dtype::i32, reduction::sum); !r) return r;
    }
    return {};
  }
  /// The outcome on all ranks: a rank's own failure, or that of others. @error peer_lost: other ranks failed; as communicator::all_reduce
  result<void> agree(result<void> mine) const {
    std::int32_t failed = mine ? 0 : 1;
    auto told = add({&failed, 1}, true, true);
    if (!mine) return mine;
    if (!told) return told;
    return outcome(failed);
  }
  /// @error peer_lost: some ranks failed
  result<void> outcome(std::int32_t failed) const {
    if (failed == 0) return {};
    return fail(errc::peer_lost, std::to_string(failed) + " of the " + std::to_string(ranks()) + " ranks could not save it", "checkpoint",
                "see what they report; the last checkpoint is whole");
  }

 private:
  rank_groups groups_;
};

/// Which tensor of a session, and what it is called in a file.
struct whole_tensor {
  tensor_kind kind;
  std::size_t slot = 0;
  std::string_view name;
};

/// Calls put(bytes) with the numbers of whole tensors, one after another, on every rank of a mesh.
///
/// @param piece_elems  how many are exchanged at a time
/// @error as the session's read and as `put`, with the tensor's name; non_finite: a number is NaN or infinite, with the step; out_of_memory; peer_lost: another
///        rank failed. Every rank fails where one does
template <HoldsParts S, class Put>
result<void> give_whole_tensors(S& session, std::span<const whole_tensor> tensors, std::int64_t step, std::size_t piece_elems,
                                const Put& put) {
  const mesh_exchange exchange(session.groups());
  const int position = session.groups().position().tensor;
  const auto& slots = session.parameters();
  std::int64_t most = 0, longest = 0;
  for (const whole_tensor& t : tensors) {
    most = std::max(most, slots[t.slot].dims.count());
    longest = std::max(longest, slots[t.slot].pieces.whole(slots[t.slot].dims).count());
  }
  const auto room_elems = std::size_t(std::min(longest, std::int64_t(piece_elems)));
  const std::unique_ptr<float[]> own(new (std::nothrow) float[std::size_t(most)]);
  const std::unique_ptr<std::int32_t[]> bits(new (std::nothrow) std::int32_t[room_elems + 1]);
  result<void> mine;
  if (own == nullptr || bits == nullptr)
    mine =
        fail(errc::out_of_memory, "no memory for the " + std::to_string(std::size_t(most) * sizeof(float)) + " bytes of the largest tensor",
             "checkpoint", "free memory, or train a smaller model");
  if (auto r = exchange.agree(std::move(mine)); !r) return r;
  mine = result<void>();
  for (const whole_tensor& t : tensors) {
    const slot& s = slots[t.slot];
    const std::span part(own.get(), std::size_t(s.dims.count()));
    const std::string in = "tensor '" + std::string(t.name) + "'";
    if (mine) mine = session.read_own(t.kind, t.slot, part);
    const std::int64_t whole = s.pieces.whole(s.dims).count();
    for (std::int64_t first = 0, n = 0; first < whole; first += n) {
      n = std::min(whole - first, std::int64_t(room_elems));
      std::fill_n(bits.get(), n, 0);
      if (mine)
        for_piece_runs(s, position, [&](const piece_run& r) {
          const std::int64_t from = std::max(first, r.whole), to = std::min(first + n, r.whole + r.count);
          if (from < to)
            std::memcpy(bits.get() + (from - first), part.data() + (r.here + from - r.whole), std::size_t(to - from) * sizeof(float));
        });
      bits[std::size_t(n)] = mine ? 0 : 1;
      auto met = exchange.add({bits.get(), std::size_t(n) + 1}, session.divides(t.kind, t.slot), s.pieces.divides());
      if (met) met = exchange.outcome(bits[std::size_t(n)]);
      if (!mine || !met) {
        failure f = std::move(mine ? met : mine).error();
        if (f.where.find("tensor '") == std::string::npos && f.where != "checkpoint") f.where = f.where.empty() ? in : f.where + ": " + in;
        return f;
      }
      const std::span all(reinterpret_cast<const std::byte*>(bits.get()), std::size_t(n) * sizeof(float));
      for (std::int64_t i = 0; i < n && mine; ++i) {
        float x = 0;
        std::memcpy(&x, bits.get() + i, sizeof x);
        if (!std::isfinite(x))
          mine = fail(errc::non_finite,
                      "element " + std::to_string(first + i) + " of '" + std::string(t.name) + "' is not finite: this state is not saved",
                      "step " + std::to_string(step), "lower the learning rate; resume from the last checkpoint");
      }
      if (mine) mine = put(all);
    }
  }
  return mine;
}

/// Runs write(give) on every rank of a mesh, where give(put) calls put(bytes) with whole tensors; the ranks that do not write let `put` do nothing.
/// @error as `write`; peer_lost: another rank failed. Every rank fails where one does
template <HoldsParts S, class Write>
result<void> save_together(S& session, std::span<const whole_tensor> tensors, std::int64_t step, std::size_t piece_elems,
                           const Write& write) {
  const mesh_exchange exchange(session.groups());
  bool begun = false;
  result<void> mine = write([&](const auto& put) -> result<void> {
    if (std::exchange(begun, true))
      return fail(errc::invalid_argument, "the tensors of a mesh are given only once", "checkpoint", "save to a regular file");
    return give_whole_tensors(session, tensors, step, piece_elems, put);
  });
  if (!begun) static_cast<void>(exchange.agree(mine));  // the others wait at the begin of give_whole_tensors
  return exchange.agree(std::move(mine));
}

/// here[i] = the elements of a whole tensor that a rank has; 0 in rows of padding.
inline void take_pieces(const slot& s, int tensor, std::span<const float> whole, std::span<float> here) {
  std::fill(here.begin(), here.end(), 0.0f);
  for_piece_runs(s, tensor, [&](const piece_run& r) { std::copy_n(whole.begin() + r.whole, r.count, here.begin() + r.here); });
}

}  // namespace detail

}  // namespace isotope::train
