#pragma once
/// Ranks as threads of one process: any number of them, with any number of processors.
///
/// A rank passes the addresses of its numbers to the others and waits until all have done so. Then each combines its own slice of the range from the memory of
/// all ranks and writes it to all of them, so nothing is copied twice and there is no scratch memory. A rank returns only when no other one works any more, so
/// its memory is not touched after that, whatever happened.
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "call.hpp"
#include "meeting.hpp"
#include "transport.hpp"

namespace isotope {

namespace comm {

class thread_communicator final : public communicator {
 public:
  thread_communicator(std::shared_ptr<meeting> all, int rank) : all_(std::move(all)), rank_(rank) {}
  ~thread_communicator() override { all_->end(left(rank_, meeting::name)); }

  int rank() const override { return rank_; }
  int ranks() const override { return all_->ranks(); }

  result<void> all_reduce(std::span<std::byte> x, dtype type, reduction how) override {
    const call c{operation::all_reduce, type, how, 0, x.size(), x.data(), x.data()};
    return run(c, check::numbers(c.what, x, type), [&] {
      const auto size = std::size_t(size_of(type));
      const auto [begin, end] = slice_of(x.size() / size, rank_, ranks());
      sources_.clear(), targets_.clear();
      for (int r = 0; r < ranks(); ++r) {
        sources_.push_back(all_->of(r).from + begin * size);
        targets_.push_back(all_->of(r).to + begin * size);
      }
      combine(sources_, targets_, end - begin, type, how);
    });
  }
  result<void> all_gather(std::span<const std::byte> part, std::span<std::byte> whole) override {
    const call c{operation::all_gather, dtype::u8, reduction::sum, 0, part.size(), part.data(), whole.data()};
    return run(c, check::parts(c.what, part, whole, rank_, ranks()), [&] {
      for (int r = 0; r < ranks(); ++r) copy(all_->of(r).from, whole.data() + std::size_t(r) * part.size(), part.size());
    });
  }
  result<void> reduce_scatter(std::span<std::byte> whole, std::span<std::byte> part, dtype type, reduction how) override {
    const call c{operation::reduce_scatter, type, how, 0, whole.size(), whole.data(), part.data()};
    auto fits = check::parts(c.what, part, whole, rank_, ranks());
    if (fits) fits = check::numbers(c.what, part, type);
    if (fits) fits = check::numbers(c.what, whole, type);
    return run(c, std::move(fits), [&] {
      sources_.clear(), targets_.assign(1, part.data());
      for (int r = 0; r < ranks(); ++r) sources_.push_back(all_->of(r).from + std::size_t(rank_) * part.size());
      combine(sources_, targets_, part.size() / std::size_t(size_of(type)), type, how);
    });
  }
  result<void> broadcast(std::span<std::byte> x, int root) override {
    const call c{operation::broadcast, dtype::u8, reduction::sum, root, x.size(), x.data(), x.data()};
    return run(c, check::root(root, ranks()), [&] { copy(all_->of(root).from, x.data(), x.size()); });
  }
  result<void> barrier() override {
    return run({}, {}, [] {});
  }
  result<void> state() override {
    if (all_->has_ended()) return all_->ended(rank_);
    return {};
  }
  void abort(failure why) noexcept override { all_->end({std::move(why), rank_}); }

 private:
  std::shared_ptr<meeting> all_;
  int rank_;
  own_thread thread_;
  std::vector<const std::byte*> sources_;
  std::vector<std::byte*> targets_;

  static void copy(const std::byte* from, std::byte* to, std::size_t bytes) {
    if (bytes != 0 && from != to) std::memcpy(to, from, bytes);
  }
  /// Runs `work` between the arrival of all ranks and the end of everybody's work. A call that does not fit ends the group, since the others wait for it.
  template <class Work> result<void> run(const call& c, result<void> fits, const Work& work) {
    if (auto here = thread_.check(c.what); !here) return here;
    if (!fits) {
      all_->end({fits.error(), rank_});
      return all_->ended(rank_);
    }
    if (auto met = all_->arrive(rank_, c); !met) return met;
    work();
    all_->finish();
    return {};
  }
};

}  // namespace comm

struct thread_group_options {
  double timeout_seconds = 600;  // how long a rank waits for the others in one operation; infinity: for ever
  int spin_usec = 40;            // how long it spins and yields before it sleeps
};

/// A group of threads. Communicators may outlive it.
class thread_group {
 public:
  static constexpr std::string_view name = comm::meeting::name;

  explicit thread_group(int ranks, const thread_group_options& o = {})
      : all_(std::make_shared<comm::meeting>(ranks, o.timeout_seconds, o.spin_usec)) {}

  int ranks() const { return all_->ranks(); }
  /// Does not wait for the other ranks. @error invalid_argument: no such rank, or a timeout below 0; in_use: it has joined before
  result<std::unique_ptr<communicator>> join(int rank) {
    if (auto r = comm::check::member(rank, ranks(), name); !r) return r.error();
    if (auto r = all_->enter(rank); !r) return r.error();
    return std::unique_ptr<communicator>(new comm::thread_communicator(all_, rank));
  }
  /// Ends the group with this cause on every rank. From any thread; for those that wait for the ranks.
  void abort(failure why) noexcept { all_->end({std::move(why), -1}); }

 private:
  std::shared_ptr<comm::meeting> all_;
};

static_assert(Transport<thread_group>);
static_assert(!std::movable<comm::thread_communicator>);

}  // namespace isotope
