#pragma once
/// The bounded queue of a device worker: what waits, what is refused, and the answers to jobs that never run.
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <variant>

#include "../core/error.hpp"
#include "job.hpp"

namespace isotope::worker {

/// What `submit` does when the queue is full: it waits for room, or answers queue_full. On the worker's own thread it never waits.
enum class when_full : std::uint8_t { block, refuse };

struct queue_options {
  std::size_t capacity = 64;  // jobs that wait, besides the one that runs
  when_full full = when_full::block;
};

class job_queue {
 public:
  job_queue(std::string owner, const queue_options& o) : owner_(std::move(owner)), options_(o) {}

  /// The thread that pops. To be called there, before the first job is submitted.
  void served_here() {
    const std::lock_guard lock(mutex_);
    server_ = std::this_thread::get_id();
  }
  bool is_served_here() const {
    const std::lock_guard lock(mutex_);
    return server_ == std::this_thread::get_id();
  }

  /// Puts a job into the queue, or answers it. A drop on a worker that has nothing any more is acknowledged.
  template <Job J> reply<typename J::reply> push(J job) {
    constexpr bool ends = std::is_same_v<J, shut_down>;
    std::unique_lock lock(mutex_);
    const auto room = [&] { return closed_ || cause_ || waiting_.size() < options_.capacity; };
    if (!ends && !room() && options_.full == when_full::block && server_ != std::this_thread::get_id()) room_.wait(lock, room);
    if constexpr (ends || std::is_same_v<J, drop>)
      if (closed_ || (!ends && cause_)) return answered<void>({});
    if (closed_) return answered<typename J::reply>(gone());
    if (cause_ && !ends) return answered<typename J::reply>(poisoned(*cause_));
    if (!ends && !room())
      return answered<typename J::reply>(
          fail(errc::queue_full, std::to_string(waiting_.size()) + " jobs wait, and the queue holds " + std::to_string(options_.capacity),
               owner_, "submit again later, or give the worker a longer queue"));
    queued<J> entry{std::move(job), {}};
    auto answer = entry.answer.get_reply();
    std::deque<queued_job> refused;
    if constexpr (ends) {
      closed_ = true;
      if (entry.job.waiting == waiting_jobs::refuse) refused.swap(waiting_);
    }
    waiting_.emplace_back(std::move(entry));
    lock.unlock();
    ends ? room_.notify_all() : void();
    jobs_.notify_one();
    for (queued_job& j : refused) refuse(j, gone());
    return answer;
  }
  /// Waits for the next job.
  queued_job pop() {
    std::unique_lock lock(mutex_);
    jobs_.wait(lock, [&] { return !waiting_.empty(); });
    queued_job next = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    room_.notify_one();
    return next;
  }
  /// The device failed: all jobs that wait and all later ones are answered with the first cause, but drops and the shutdown succeed. Any thread may call it.
  void poison(failure cause) {
    std::deque<queued_job> refused;
    failure first;
    {
      const std::lock_guard lock(mutex_);
      if (!cause_) cause_ = std::move(cause);
      first = *cause_;
      for (std::deque<queued_job> all = std::exchange(waiting_, {}); !all.empty(); all.pop_front())
        (std::holds_alternative<queued<shut_down>>(all.front()) ? waiting_ : refused).push_back(std::move(all.front()));
    }
    room_.notify_all();
    for (queued_job& j : refused) refuse(j, poisoned(first));
  }
  /// The first cause, where the device failed.
  std::optional<failure> cause() const {
    const std::lock_guard lock(mutex_);
    return cause_;
  }
  std::size_t waiting() const {
    const std::lock_guard lock(mutex_);
    return waiting_.size();
  }
  std::size_t capacity() const { return options_.capacity; }

 private:
  std::string owner_;
  queue_options options_;
  mutable std::mutex mutex_;
  std::condition_variable room_, jobs_;
  std::deque<queued_job> waiting_;
  std::optional<failure> cause_;
  bool closed_ = false;
  std::thread::id server_;

  failure gone() const { return fail(errc::worker_gone, "the worker was shut down", owner_, "start another one"); }
  failure poisoned(const failure& cause) const {
    return fail(errc::poisoned, "the device failed before: " + cause.line(), owner_, "shut the worker down, and start another one");
  }
  static void refuse(queued_job& j, const failure& why) {
    std::visit(
        [&]<class J>(queued<J>& q) {
          if constexpr (std::is_same_v<J, drop>) q.answer.answer({});
          else q.answer.answer(why);
        },
        j);
  }
};

}  // namespace isotope::worker
