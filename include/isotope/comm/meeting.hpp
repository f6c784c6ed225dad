#pragma once
/// Where the ranks of a thread group meet: all arrive, all work, all leave; or the group ends, and everybody who waits gets the cause.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "../core/compiler.hpp"
#include "call.hpp"

namespace isotope::comm {

/// One atomic word holds how often all have met, how many have arrived, and whether the group has ended, so an arrival, a time that ran out and an abort exclude
/// each other. A rank that was counted for a meeting always takes part in its work: the work needs nothing of the others, so waiting for its end is safe.
class meeting {
 public:
  static constexpr std::string_view name = "threads";

  meeting(int ranks, double timeout_seconds, int spin_usec) : ranks_(ranks), timeout_(timeout_seconds), spin_usec_(spin_usec) {
    if (ranks > 0) places_.reset(new place[std::size_t(ranks)]);
  }

  int ranks() const { return ranks_; }
  /// What rank r asked for. Valid between `arrive` and `finish`.
  const call& of(int r) const { return places_[std::size_t(r)].asked; }

  /// @error invalid_argument, in_use
  result<void> enter(int rank) {
    if (!(timeout_ >= 0))
      return fail(errc::invalid_argument, "timeout_seconds is " + std::to_string(timeout_), std::string(name),
                  "give a number of seconds from 0 on, or infinity");
    if (ranks_ > most_ranks)
      return fail(errc::invalid_argument, std::to_string(ranks_) + " ranks", std::string(name),
                  "give at most " + std::to_string(most_ranks));
    if (!places_[std::size_t(rank)].taken.exchange(true)) return {};
    return fail(errc::in_use, "rank " + std::to_string(rank) + " has joined before", std::string(name),
                "give every thread a rank of its own");
  }

  /// Returns when all ranks have arrived with calls that agree. Then, and only then, the caller works and calls `finish`.
  result<void> arrive(int rank, const call& c) {
    place& mine = places_[std::size_t(rank)];
    mine.asked = c;
    mine.arrivals.fetch_add(1, std::memory_order_relaxed);
    std::uint64_t w = word_.load();
    for (;;) {
      if (w & over) return ended(rank);
      const std::uint64_t met = w / one_meeting;
      if (int(w % one_meeting / one_arrival) + 1 < ranks_) {
        if (!word_.compare_exchange_weak(w, w + one_arrival)) continue;
        return await(rank, c, met);
      }
      if (auto different = disagreement()) {
        end({*std::move(different), -1});
        return ended(rank);
      }
      working_.store(ranks_);                                                    // nobody works, or they could not all have arrived
      if (!word_.compare_exchange_strong(w, (met + 1) * one_meeting)) continue;  // ended meanwhile
      wake();
      return {};
    }
  }
  /// Returns when everybody's work is done.
  void finish() {
    if (working_.fetch_sub(1) == 1) return wake();
    sleep([&] { return working_.load() == 0; }, std::numeric_limits<double>::infinity());
  }

  /// Ends the group, unless it has ended before: the first cause stays.
  void end(cause why) noexcept {
    {
      const std::lock_guard lock(mutex_);
      if (!why_) why_ = std::move(why);
      word_.fetch_or(over);
    }
    awake_.notify_all();
  }
  bool has_ended() const { return (word_.load() & over) != 0; }
  /// The cause, as `rank` sees it. Precondition: has_ended()
  failure ended(int rank) {
    const std::lock_guard lock(mutex_);
    return why_->seen_by(rank);
  }

 private:
  static constexpr std::uint64_t over = 1, one_arrival = 2, one_meeting = std::uint64_t(1) << 20;
  static constexpr int most_ranks = 1 << 16;
  struct alignas(64) place {
    call asked;
    std::atomic<std::uint64_t> arrivals{0};
    std::atomic<bool> taken{false};
  };

  const int ranks_;
  const double timeout_;
  const int spin_usec_;
  std::unique_ptr<place[]> places_;
  alignas(64) std::atomic<std::uint64_t> word_{0};
  alignas(64) std::atomic<int> working_{0};
  std::atomic<int> sleepers_{0};
  std::mutex mutex_;
  std::condition_variable awake_;
  std::optional<cause> why_;  // written once, before `over`

  using clock = std::chrono::steady_clock;

  result<void> await(int rank, const call& c, std::uint64_t met) {
    const auto moved = [&] { return word_.load() / one_meeting != met; };
    sleep([&] { return moved() || (word_.load() & over) != 0; }, timeout_);
    if (moved()) return {};
    if ((word_.load() & over) == 0) {
      const std::lock_guard lock(mutex_);
      cause why{late(rank, c), -1};
      for (std::uint64_t w = word_.load(); (w & over) == 0;) {
        if (w / one_meeting != met) return {};
        if (!word_.compare_exchange_weak(w, w | over)) continue;
        if (!why_) why_ = std::move(why);
        awake_.notify_all();
        break;
      }
    }
    return ended(rank);
  }

  /// Waits until done(), but no longer than `seconds`.
  template <class Done> void sleep(const Done& done, double seconds) {
    if (done()) return;
    const auto begin = clock::now();
    // Ranks may share processors, so a rank that waits offers its own to one that works, which also needs no call to wake it.
    const auto until = begin + std::chrono::microseconds(spin_usec_);
    do {
      for (int i = 0; i < 32; ++i) {
        ISOTOPE_PAUSE();
        if (done()) return;
      }
      std::this_thread::yield();
      if (done()) return;
    } while (clock::now() < until);
    std::unique_lock lock(mutex_);
    sleepers_.fetch_add(1);
    constexpr double longest = 1e9;  // what the clock can add without an overflow
    if (seconds < longest)
      awake_.wait_until(lock, begin + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(seconds)), done);
    else awake_.wait(lock, done);
    sleepers_.fetch_sub(1);
  }
  void wake() {
    if (sleepers_.load() == 0) return;
    { const std::lock_guard lock(mutex_); }
    awake_.notify_all();
  }

  /// All ranks have arrived: whether one of them asks for something else than rank 0.
  std::optional<failure> disagreement() const {
    for (int r = 1; r < ranks_; ++r)
      if (!of(r).agrees(of(0)))
        return fail(errc::invalid_argument, "rank 0 calls " + of(0).text() + ", and rank " + std::to_string(r) + " calls " + of(r).text(),
                    std::string(name), "let all ranks call the same operations in the same order with the same sizes");
    return std::nullopt;
  }
  failure late(int rank, const call& c) const {
    const std::uint64_t mine = places_[std::size_t(rank)].arrivals.load(std::memory_order_relaxed);
    std::vector<int> missing;
    for (int r = 0; r < ranks_; ++r)
      if (places_[std::size_t(r)].arrivals.load(std::memory_order_relaxed) < mine) missing.push_back(r);
    return fail(errc::timeout,
                ranks_text(missing) + " of " + std::to_string(ranks_) + " did not call " + c.text() + ", operation " +
                    std::to_string(mine) + ", within " + seconds_text(timeout_),
                std::string(name), "look for what holds " + ranks_text(missing) + ", or give a longer timeout");
  }
};

}  // namespace isotope::comm
