#pragma once
/// A group of threads for the tests of pools, whose last rank may get wrong sums.
#include <isotope/comm/thread_group.hpp>

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

namespace worker_test {

class test_group {
 public:
  explicit test_group(int ranks, float lie = 0) : group_(ranks), lie_(lie) {}

  /// The factory of a rank's communicator.
  static auto factory(const std::shared_ptr<test_group>& g, int rank) {
    return [g, rank]() -> isotope::result<std::unique_ptr<isotope::communicator>> {
      auto joined = g->group_.join(rank);
      if (!joined || g->lie_ == 0 || rank + 1 < g->group_.ranks()) return joined;
      return std::unique_ptr<isotope::communicator>(std::make_unique<liar>(*std::move(joined), g->lie_));
    };
  }

 private:
  /// Adds a number to the first of each f32 sum.
  class liar final : public isotope::communicator {
   public:
    liar(std::unique_ptr<isotope::communicator> c, float lie) : c_(std::move(c)), lie_(lie) {}
    int rank() const override { return c_->rank(); }
    int ranks() const override { return c_->ranks(); }
    isotope::result<void> all_reduce(std::span<std::byte> x, isotope::dtype type, isotope::reduction how) override {
      auto r = c_->all_reduce(x, type, how);
      float first = 0;
      if (!r || type != isotope::dtype::f32) return r;
      std::memcpy(&first, x.data(), sizeof first);
      first += lie_;
      std::memcpy(x.data(), &first, sizeof first);
      return r;
    }
    isotope::result<void> all_gather(std::span<const std::byte> part, std::span<std::byte> whole) override {
      return c_->all_gather(part, whole);
    }
    isotope::result<void> reduce_scatter(std::span<std::byte> whole, std::span<std::byte> part, isotope::dtype type,
                                         isotope::reduction how) override {
      return c_->reduce_scatter(whole, part, type, how);
    }
    isotope::result<void> broadcast(std::span<std::byte> x, int root) override { return c_->broadcast(x, root); }
    isotope::result<void> barrier() override { return c_->barrier(); }
    void abort(isotope::failure cause) noexcept override { c_->abort(std::move(cause)); }

   private:
    std::unique_ptr<isotope::communicator> c_;
    float lie_;
  };

  isotope::thread_group group_;
  float lie_;
};

}  // namespace worker_test
