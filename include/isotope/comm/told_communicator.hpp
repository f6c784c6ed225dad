#pragma once
/// A rank's end of a group that tells a watchdog when it waits for the other ranks.
#include <span>
#include <string>
#include <utility>

#include "communicator.hpp"
#include "watchdog.hpp"

namespace isotope {

/// The operations of another communicator. While one of them runs, the watched step waits for other ranks, and afterwards it does what `doing` says, such as
/// "was writing the file".
class told_communicator final : public communicator {
 public:
  /// All outlive it.
  told_communicator(communicator& group, watchdog& dog, const std::string& doing) : group_(group), dog_(dog), doing_(doing) {}

  int rank() const override { return group_.rank(); }
  int ranks() const override { return group_.ranks(); }
  result<void> all_reduce(std::span<std::byte> x, dtype type, reduction how) override {
    return waiting([&] { return group_.all_reduce(x, type, how); });
  }
  result<void> all_gather(std::span<const std::byte> part, std::span<std::byte> whole) override {
    return waiting([&] { return group_.all_gather(part, whole); });
  }
  result<void> reduce_scatter(std::span<std::byte> whole, std::span<std::byte> part, dtype type, reduction how) override {
    return waiting([&] { return group_.reduce_scatter(whole, part, type, how); });
  }
  result<void> broadcast(std::span<std::byte> x, int root) override {
    return waiting([&] { return group_.broadcast(x, root); });
  }
  result<void> barrier() override {
    return waiting([&] { return group_.barrier(); });
  }
  result<void> state() override { return group_.state(); }
  void abort(failure cause) noexcept override { group_.abort(std::move(cause)); }

 private:
  communicator& group_;
  watchdog& dog_;
  const std::string& doing_;

  template <class Operation> result<void> waiting(const Operation& operation) {
    dog_.tell("waited for the other ranks", true);
    auto r = operation();
    if (r) dog_.tell(doing_);  // otherwise the step is about to end, and another rank is the cause
    return r;
  }
};

}  // namespace isotope
