#pragma once
/// One worker for each rank of a group, and jobs that all ranks run together.
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "device_worker.hpp"

namespace isotope::worker {

/// A job for all ranks is submitted to each before any answer is awaited, and all answers are awaited, also after a failure. When one rank fails, the groups of the
/// others are aborted, so that none waits for it in a collective: they answer with this cause, stay usable, and may join another group. After an error in a job's
/// arguments, which usually every rank reports before it begins, that is done only where another rank still runs a second later.
class worker_pool {
 public:
  /// Starts a worker for each of the options; worker k is rank k. If one does not start, the others are shut down. @error as device_worker::start, with the rank
  template <Target T, class Device = device<T>, FaultSource Faults = no_faults>
  static result<worker_pool> start(const std::vector<worker_options>& ranks, const std::vector<Faults>& faults = {}) {
    worker_pool pool;
    for (std::size_t k = 0; k < ranks.size(); ++k) {
      auto w = device_worker::start<T, Device>(ranks[k], k < faults.size() ? faults[k] : Faults{});
      if (!w) return of_rank(k, std::move(w).error());
      pool.workers_.push_back(*std::move(w));
    }
    return pool;
  }

  std::size_t size() const { return workers_.size(); }
  const device_worker& operator[](std::size_t rank) const { return workers_[rank]; }

  /// Submits make(rank) to every rank, and returns all answers in the order of ranks.
  template <class Make> auto submit_to_all(const Make& make) const {
    using value = typename decltype(make(std::size_t{}))::reply;
    const auto first = std::make_shared<first_failure>();
    std::vector<reply<value>> replies;
    for (std::size_t k = 0; k < workers_.size(); ++k) {
      promise<value> given;
      replies.push_back(given.get_reply());
      workers_[k].submit(make(k)).then([this, k, first, to = std::move(given)](result<value> x) {
        if (!x && first->take(of_rank(k, x.error())) && !about_arguments(x.error().code)) abort_all(*first->get(), k);
        to.answer(std::move(x));
      });
    }
    std::vector<result<value>> all;
    for (auto& r : replies) {
      while (!r.wait_for(grace_seconds))
        if (const auto cause = first->get()) abort_all(*cause);
      all.push_back(r.get());
    }
    return all;
  }
  /// The same, as one result: all answers, or the failure that came first by its cause. A rank that only reports that it lost a peer did not cause the failure.
  template <class Make> auto run_on_all(const Make& make) const {
    auto all = submit_to_all(make);
    using value = typename decltype(make(std::size_t{}))::reply;
    using whole = std::conditional_t<std::is_void_v<value>, void, std::vector<std::conditional_t<std::is_void_v<value>, char, value>>>;
    const result<void> failed = first_cause(all);
    if (!failed) return result<whole>(failed.error());
    if constexpr (std::is_void_v<value>) {
      return result<void>();
    } else {
      whole values;
      for (auto& x : all) values.push_back(*std::move(x));
      return result<whole>(std::move(values));
    }
  }

  /// Asks every rank for its memory, by which it shows that it answers. @error of_rank
  result<std::vector<device_memory>> ping() const {
    return run_on_all([](std::size_t) { return query_memory{}; });
  }
  /// Joins all ranks to one group: make(rank) is the factory of that rank's communicator. Leaves a group that was joined before. @error of_rank
  template <class Make> result<void> join(const Make& make) {
    auto joined = run_on_all([&](std::size_t rank) { return join_communicator{make(rank)}; });
    if (!joined) return std::move(joined).error();
    for (std::size_t k = 0; k < groups_.size(); ++k) static_cast<void>(workers_[k].submit(drop{groups_[k]}));
    groups_ = *std::move(joined);
    return {};
  }
  /// Runs check_group on all ranks. @error corrupt with the rank that got a wrong number; of_rank
  result<std::vector<group_report>> check() const {
    if (groups_.empty()) return fail(errc::invalid_argument, "the ranks have joined no group", "worker pool", "call join first");
    return run_on_all([&](std::size_t rank) { return check_communicator{groups_[rank]}; });
  }
  /// Loads every rank's part of a model: make(rank) is that rank's load job, whose `group` is set here if the ranks have joined one. If one rank fails, the
  /// parts of the others are dropped. @error of_rank
  template <class Make> result<tensor_parallel_handle> load(const Make& make) {
    auto all = submit_to_all([&](std::size_t rank) {
      worker::load job = make(rank);
      if (!groups_.empty()) job.group = groups_[rank];
      return job;
    });
    if (const auto failed = first_cause(all); !failed) {
      for (std::size_t k = 0; k < all.size(); ++k)
        if (all[k]) static_cast<void>(workers_[k].submit(drop{all[k]->model}).get());
      return failed.error();
    }
    std::vector<worker::loaded> parts;
    for (auto& x : all) parts.push_back(*std::move(x));
    return models_.add(std::move(parts));
  }
  /// What the ranks have of a model. @error stale_handle
  result<std::vector<worker::loaded>> parts(const tensor_parallel_handle& h) {
    auto found = models_.find(h);
    if (!found) return std::move(found).error();
    return **found;
  }
  /// Runs a job that takes a model (step, evaluate, decode, write, read, clear states) on every rank's part: make(rank, its model). @error stale_handle, of_rank
  template <class Make> auto run(const tensor_parallel_handle& h, const Make& make) {
    auto found = models_.find(h);
    const auto of_part = [&](std::size_t rank) { return make(rank, (**found)[rank].model); };
    using answer = decltype(run_on_all(of_part));
    return found ? run_on_all(of_part) : answer(std::move(found).error());
  }
  /// Destroys every rank's part. @error stale_handle
  result<void> drop_model(const tensor_parallel_handle& h) {
    auto parts = models_.take(h);
    if (!parts) return std::move(parts).error();
    return run_on_all([&](std::size_t rank) { return drop{(*parts)[rank].model}; });
  }

  /// Fails what waits for a peer on every rank but one, with peer_lost and the text of the cause; `all_ranks` spares none.
  static constexpr std::size_t all_ranks = std::size_t(-1);
  void abort_all(failure cause, std::size_t but = all_ranks) const {
    cause.code = errc::peer_lost;  // a lost device of one rank is not that of another
    for (std::size_t k = 0; k < workers_.size(); ++k)
      if (k != but) workers_[k].abort_groups(cause);
  }
  /// Shuts all workers down. @error of_rank: a thread hangs
  result<void> shut_down(waiting_jobs waiting = waiting_jobs::run) {
    result<void> all;
    for (const device_worker& w : workers_) static_cast<void>(w.submit(worker::shut_down{waiting}));  // they end side by side
    for (std::size_t k = 0; k < workers_.size(); ++k)
      if (auto r = workers_[k].shut_down(waiting); !r && all) all = of_rank(k, std::move(r).error());
    return all;
  }

 private:
  std::vector<device_worker> workers_;
  std::vector<communicator_handle> groups_;
  handle_table<tensor_parallel_kind, std::vector<worker::loaded>> models_{next_pool()};

  static constexpr double grace_seconds = 1;

  /// The failure of the rank that failed first.
  class first_failure {
   public:
    bool take(failure f) {
      const std::lock_guard lock(mutex_);
      if (what_) return false;
      what_ = std::move(f);
      return true;
    }
    std::optional<failure> get() const {
      const std::lock_guard lock(mutex_);
      return what_;
    }

   private:
    mutable std::mutex mutex_;
    std::optional<failure> what_;
  };

  worker_pool() = default;
  static bool about_arguments(errc c) {
    return c == errc::invalid_argument || c == errc::not_found || c == errc::stale_handle || c == errc::wrong_device;
  }
  static std::uint64_t next_pool() {
    static std::atomic<std::uint64_t> last = 0;
    return ++last;
  }
  static failure of_rank(std::size_t rank, failure f) {
    f.where = "rank " + std::to_string(rank) + (f.where.empty() ? "" : ", " + f.where);
    return f;
  }
  /// The failure of the lowest rank, of those that lost no peer if there is one.
  template <class R> static result<void> first_cause(const std::vector<R>& all) {
    for (const bool lost_peers : {false, true})
      for (std::size_t k = 0; k < all.size(); ++k)
        if (!all[k] && (all[k].error().code == errc::peer_lost) == lost_peers) return of_rank(k, all[k].error());
    return {};
  }
};

}  // namespace isotope::worker
