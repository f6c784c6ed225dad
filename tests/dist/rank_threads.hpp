#pragma once
/// Ranks as threads of this process, with a communicator that is as simple as its contract allows.
#include <isotope/comm/communicator.hpp>

#include <barrier>
#include <cstring>
#include <memory>
#include <vector>

namespace dist_test {

/// What the ranks of a group share: where each has its numbers, and a barrier.
class meeting_place {
 public:
  explicit meeting_place(int ranks) : parts(std::size_t(ranks)), all_(ranks) {}
  void wait() { all_.arrive_and_wait(); }
  int ranks() const { return int(parts.size()); }
  std::vector<std::span<std::byte>> parts;

 private:
  std::barrier<> all_;
};

/// One rank of a group of threads. It counts its calls; every rank combines the numbers of all in the order of the ranks.
class thread_rank final : public isotope::communicator {
  /// Shows x to the others, and calls f while nobody changes theirs.
  template <class F> auto meet(std::span<std::byte> x, const F& f) {
    where_->parts[std::size_t(rank_)] = x;
    where_->wait();
    auto r = f();
    where_->wait();
    return r;
  }

 public:
  thread_rank(std::shared_ptr<meeting_place> where, int rank) : where_(std::move(where)), rank_(rank) {}
  /// How often all_reduce, all_gather and reduce_scatter were called.
  std::vector<int> calls() const { return {reduced_, gathered_, scattered_}; }
  std::vector<int> calls_since(const std::vector<int>& before) const {
    return {reduced_ - before[0], gathered_ - before[1], scattered_ - before[2]};
  }

  int rank() const override { return rank_; }
  int ranks() const override { return where_->ranks(); }
  isotope::result<void> all_reduce(std::span<std::byte> x, isotope::dtype type, isotope::reduction) override {
    ++reduced_;
    const auto sum = meet(x, [&] { return sum_of(0, x.size(), type); });
    std::memcpy(x.data(), sum.data(), sum.size());
    return {};
  }
  isotope::result<void> all_gather(std::span<const std::byte> part, std::span<std::byte> whole) override {
    ++gathered_;
    const std::vector<std::byte> copy(part.begin(), part.end());
    auto own = std::span(const_cast<std::byte*>(copy.data()), copy.size());
    meet(own, [&] {
      for (std::size_t r = 0; r < where_->parts.size(); ++r)
        std::memcpy(whole.data() + r * own.size(), where_->parts[r].data(), own.size());
      return 0;
    });
    return {};
  }
  isotope::result<void> reduce_scatter(std::span<std::byte> whole, std::span<std::byte> part, isotope::dtype type,
                                       isotope::reduction) override {
    ++scattered_;
    const auto sum = meet(whole, [&] { return sum_of(part.size() * std::size_t(rank_), part.size(), type); });
    // Nobody may rely on the other pieces, but for padding, which is 0 on all ranks.
    for (std::size_t i = 0; i + 1 < whole.size(); i += 2) {
      std::uint16_t word;
      std::memcpy(&word, whole.data() + i, sizeof word);
      if (word != 0) std::memset(whole.data() + i, 0xff, sizeof word);
    }
    std::memcpy(part.data(), sum.data(), sum.size());
    return {};
  }
  isotope::result<void> broadcast(std::span<std::byte>, int) override { return barrier(); }
  isotope::result<void> barrier() override {
    where_->wait();
    return {};
  }
  void abort(isotope::failure) noexcept override {}

 private:
  std::shared_ptr<meeting_place> where_;
  int rank_, reduced_ = 0, gathered_ = 0, scattered_ = 0;

  template <class E, class A> void add(std::size_t at, std::vector<std::byte>& sum) const {
    for (std::size_t i = 0; i < sum.size(); i += sizeof(E)) {
      A total{};
      for (std::size_t r = 0; r < where_->parts.size(); ++r) {
        E x;
        std::memcpy(&x, where_->parts[r].data() + at + i, sizeof x);
        total = r == 0 ? A(x) : total + A(x);
      }
      const E rounded(total);
      std::memcpy(sum.data() + i, &rounded, sizeof rounded);
    }
  }
  std::vector<std::byte> sum_of(std::size_t at, std::size_t bytes, isotope::dtype type) const {
    std::vector<std::byte> sum(bytes);
    if (type == isotope::dtype::f64) add<double, double>(at, sum);
    else if (type == isotope::dtype::bf16) add<isotope::bfloat16, float>(at, sum);
    else add<float, float>(at, sum);
    return sum;
  }
};

}  // namespace dist_test
