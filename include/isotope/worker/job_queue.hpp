#pragma once
/// The queue of a device worker: what waits, what is refused, and the answers to jobs that never run.
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "../core/error.hpp"
#include "bounded_queue.hpp"
#include "job.hpp"

namespace isotope::worker {

struct queue_options {
  std::size_t capacity = 64;          // jobs that wait, besides the one that runs
  when_full full = when_full::block;  // on the worker's own thread `submit` never waits: it answers queue_full
};

class job_queue {
 public:
  job_queue(std::string owner, const queue_options& o) : owner_(std::move(owner)), options_(o), waiting_(o.capacity) {}

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
    using value = typename J::reply;
    when_full full = options_.full;
    {
      const std::lock_guard lock(mutex_);
      if (ended_ || cause_) return refused<J>();
      if (server_ == std::this_thread::get_id()) full = when_full::refuse;
    }
    queued<J> entry{std::move(job), {}};
    auto answer = entry.answer.get_reply();
    std::vector<queued_job> one;
    one.emplace_back(std::move(entry));
    switch (waiting_.push(one, full)) {
      case accepted::yes: return answer;
      case accepted::full:
        return answered<value>(fail(
            errc::queue_full, std::to_string(waiting_.size()) + " jobs wait, and the queue holds " + std::to_string(waiting_.capacity()),
            owner_, "submit again later, or give the worker a longer queue"));
      case accepted::closed: break;
    }
    const std::lock_guard lock(mutex_);
    return refused<J>();
  }
  /// The last job: it finds room in any case, and a failed device does not refuse it. Further ones are acknowledged.
  reply<void> push(shut_down job) {
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(ended_, true)) return answered<void>({});
    }
    std::deque<queued_job> gone;
    if (job.waiting == waiting_jobs::refuse) gone = waiting_.close_and_take();
    else waiting_.close();
    queued<shut_down> entry{job, {}};
    auto answer = entry.answer.get_reply();
    waiting_.push_anyway(std::move(entry));
    for (queued_job& j : gone) refuse(j, was_shut_down());
    return answer;
  }
  /// Waits for the next job.
  queued_job pop() { return waiting_.pop(); }
  /// The device failed: all jobs that wait and all later ones are answered with the first cause, but drops and the shutdown succeed. Any thread may call it.
  void poison(failure cause) {
    failure first;
    {
      const std::lock_guard lock(mutex_);
      if (!cause_) cause_ = std::move(cause);
      first = *cause_;
    }
    for (queued_job& j : waiting_.close_and_take()) {
      if (std::holds_alternative<queued<shut_down>>(j)) waiting_.push_anyway(std::move(j));
      else refuse(j, poisoned(first));
    }
  }
  /// The first cause, where the device failed.
  std::optional<failure> cause() const {
    const std::lock_guard lock(mutex_);
    return cause_;
  }
  std::size_t waiting() const { return waiting_.size(); }
  std::size_t capacity() const { return waiting_.capacity(); }

 private:
  std::string owner_;
  queue_options options_;
  bounded_queue<queued_job> waiting_;
  mutable std::mutex mutex_;  // of what follows
  std::optional<failure> cause_;
  bool ended_ = false;  // a shutdown was submitted
  std::thread::id server_;

  failure was_shut_down() const { return fail(errc::worker_gone, "the worker was shut down", owner_, "start another one"); }
  failure poisoned(const failure& cause) const {
    return fail(errc::poisoned, "the device failed before: " + cause.line(), owner_, "shut the worker down, and start another one");
  }
  /// The answer to a job that comes too late.
  template <Job J> reply<typename J::reply> refused() const {
    if constexpr (std::is_same_v<J, drop>) return answered<void>({});
    else return answered<typename J::reply>(ended_ ? was_shut_down() : poisoned(*cause_));
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
