#pragma once
/// Ranks as threads of this process, which count their collectives.
#include <isotope/comm/thread_group.hpp>

#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace dist_test {

/// One rank of a group of threads. It counts its calls, and nobody can rely on what a reduce_scatter leaves in other ranks' pieces.
class thread_rank final : public isotope::communicator {
 public:
  explicit thread_rank(std::unique_ptr<isotope::communicator> inner) : inner_(std::move(inner)) {}
  /// How often all_reduce, all_gather and reduce_scatter were called.
  std::vector<int> calls() const { return {reduced_, gathered_, scattered_}; }
  std::vector<int> calls_since(const std::vector<int>& before) const {
    return {reduced_ - before[0], gathered_ - before[1], scattered_ - before[2]};
  }

  int rank() const override { return inner_->rank(); }
  int ranks() const override { return inner_->ranks(); }
  isotope::result<void> all_reduce(std::span<std::byte> x, isotope::dtype type, isotope::reduction how) override {
    ++reduced_;
    return inner_->all_reduce(x, type, how);
  }
  isotope::result<void> all_gather(std::span<const std::byte> part, std::span<std::byte> whole) override {
    ++gathered_;
    return inner_->all_gather(part, whole);
  }
  isotope::result<void> reduce_scatter(std::span<std::byte> whole, std::span<std::byte> part, isotope::dtype type,
                                       isotope::reduction how) override {
    ++scattered_;
    std::vector<std::byte> sum(part.size());
    auto r = inner_->reduce_scatter(whole, sum, type, how);
    // Padding, which is 0 on all ranks, stays.
    for (std::size_t i = 0; i + 1 < whole.size(); i += 2) {
      std::uint16_t word;
      std::memcpy(&word, whole.data() + i, sizeof word);
      if (word != 0) std::memset(whole.data() + i, 0xff, sizeof word);
    }
    std::memcpy(part.data(), sum.data(), sum.size());
    return r;
  }
  isotope::result<void> broadcast(std::span<std::byte> x, int root) override { return inner_->broadcast(x, root); }
  isotope::result<void> barrier() override { return inner_->barrier(); }
  isotope::result<void> state() override { return inner_->state(); }
  void abort(isotope::failure why) noexcept override { inner_->abort(std::move(why)); }

 private:
  std::unique_ptr<isotope::communicator> inner_;
  int reduced_ = 0, gathered_ = 0, scattered_ = 0;
};

}  // namespace dist_test
