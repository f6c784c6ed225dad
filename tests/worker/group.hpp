#pragma once
/// A group of ranks on threads of this process, just enough for the tests of pools: all-reduce of f32, barrier, abort.
#include <isotope/comm/communicator.hpp>

#include <condition_variable>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace worker_test {

class test_group {
 public:
  explicit test_group(int ranks, float lie = 0) : ranks_(ranks), lie_(lie), parts_(std::size_t(ranks)) {}

  /// The factory of a rank's communicator.
  static auto factory(const std::shared_ptr<test_group>& g, int rank) {
    return [g, rank]() -> isotope::result<std::unique_ptr<isotope::communicator>> {
      return std::unique_ptr<isotope::communicator>(std::make_unique<end>(g, rank));
    };
  }

 private:
  class end final : public isotope::communicator {
   public:
    end(std::shared_ptr<test_group> g, int rank) : group_(std::move(g)), rank_(rank) {}
    int rank() const override { return rank_; }
    int ranks() const override { return group_->ranks_; }
    isotope::result<void> all_reduce(std::span<std::byte> x, isotope::dtype, isotope::reduction) override { return group_->sum(rank_, x); }
    isotope::result<void> all_gather(std::span<const std::byte>, std::span<std::byte>) override { return unused(); }
    isotope::result<void> reduce_scatter(std::span<std::byte>, std::span<std::byte>, isotope::dtype, isotope::reduction) override {
      return unused();
    }
    isotope::result<void> broadcast(std::span<std::byte>, int) override { return unused(); }
    isotope::result<void> barrier() override {
      float none = 0;
      return group_->sum(rank_, std::as_writable_bytes(std::span(&none, 1)));
    }
    void abort(isotope::failure cause) noexcept override { group_->abort(std::move(cause)); }

   private:
    std::shared_ptr<test_group> group_;
    int rank_;
    static isotope::failure unused() {
      return isotope::fail(isotope::errc::invalid_argument, "not in this test", "test group", "use sums");
    }
  };

  int ranks_;
  float lie_;  // added to the sum of the last rank
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::vector<float>> parts_;
  std::vector<float> total_;
  int arrived_ = 0;
  std::uint64_t round_ = 0;
  std::optional<isotope::failure> cause_;

  isotope::result<void> sum(int rank, std::span<std::byte> x) {
    std::unique_lock lock(mutex_);
    if (cause_) return lost();
    auto& mine = parts_[std::size_t(rank)];
    mine.resize(x.size() / sizeof(float));
    std::memcpy(mine.data(), x.data(), x.size());
    const auto round = round_;
    if (++arrived_ == ranks_) {
      total_.assign(mine.size(), 0);
      for (const auto& p : parts_)
        for (std::size_t i = 0; i < p.size(); ++i) total_[i] += p[i];
      arrived_ = 0;
      ++round_;
      changed_.notify_all();
    } else {
      changed_.wait(lock, [&] { return round_ != round || cause_; });
      if (round_ == round) return lost();
    }
    std::memcpy(x.data(), total_.data(), x.size());
    if (lie_ != 0 && rank + 1 == ranks_) {
      const float wrong = total_[0] + lie_;
      std::memcpy(x.data(), &wrong, sizeof wrong);
    }
    return {};
  }
  void abort(isotope::failure cause) {
    {
      const std::lock_guard lock(mutex_);
      if (!cause_) cause_ = std::move(cause);
    }
    changed_.notify_all();
  }
  isotope::failure lost() const { return isotope::fail(isotope::errc::peer_lost, cause_->line(), "test group", "join another group"); }
};

}  // namespace worker_test
