#pragma once
/// What makes communicators: threads of one process, processes over TCP, or GPUs through NCCL or by each other's memory.
#include <concepts>
#include <memory>
#include <string_view>

#include "communicator.hpp"

namespace isotope {

/// `X::name` is a word for reports, such as "threads".
template <class X>
concept NamesItself = requires {
  { X::name } -> std::convertible_to<std::string_view>;
};
/// `ranks()` is the number of ranks of the group, the same on all of them.
template <class X>
concept CountsRanks = requires(const X& x) {
  { x.ranks() } -> std::same_as<int>;
};
/// `join(rank)` makes the communicator of one rank, once, on the thread that will use and destroy it; it may wait for the other ranks, up to a time that the
/// transport's options give. Its failures are those of a communicator.
template <class X>
concept JoinsRanks = requires(X& x, int rank) {
  { x.join(rank) } -> std::same_as<result<std::unique_ptr<communicator>>>;
};
/// Communicators of different transports give the same bits, but for NCCL, whose order of sums is its own. A group ends with the first failure of any rank;
/// another group is made for another try.
template <class X>
concept Transport = NamesItself<X> && CountsRanks<X> && JoinsRanks<X>;

static_assert(!Transport<communicator>, "a communicator is one rank's end of a group, and cannot make another");
static_assert(!std::copyable<communicator> && !std::movable<communicator>, "a communicator stays with its thread");

}  // namespace isotope
