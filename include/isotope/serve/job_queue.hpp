#pragma once
/// Work for the thread of the model.
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace isotope::serve {

/// Whether work was taken over. `full`: later there may be room; `closed`: there is none any more.
enum class accepted : unsigned char { yes, full, closed };

/// A queue with room for so many jobs. Any thread may push, one thread takes.
template <class Job> class job_queue {
 public:
  explicit job_queue(std::size_t room) : room_(room) {}

  std::size_t room() const { return room_; }
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return jobs_.size();
  }
  /// Appends all jobs or none.
  accepted push(std::vector<Job> jobs) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return accepted::closed;
      if (jobs_.size() + jobs.size() > room_) return accepted::full;
      for (Job& j : jobs) jobs_.push_back(std::move(j));
    }
    there_.notify_one();
    return accepted::yes;
  }
  /// The first job for which may(job), if that is the first of all; none if the queue is empty or it may not.
  template <class May> std::optional<Job> pop_if(May&& may) {
    const std::lock_guard lock(mutex_);
    if (jobs_.empty() || !may(std::as_const(jobs_.front()))) return std::nullopt;
    std::optional<Job> first(std::move(jobs_.front()));
    jobs_.pop_front();
    return first;
  }
  std::optional<Job> pop() {
    return pop_if([](const Job&) { return true; });
  }
  /// Waits until there is a job. @return false: the queue is closed and empty
  bool wait() {
    std::unique_lock lock(mutex_);
    there_.wait(lock, [&] { return closed_ || !jobs_.empty(); });
    return !jobs_.empty();
  }
  /// Takes no more jobs; those that are there remain.
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    there_.notify_all();
  }

 private:
  std::size_t room_;
  mutable std::mutex mutex_;
  std::condition_variable there_;
  std::deque<Job> jobs_;
  bool closed_ = false;
};

}  // namespace isotope::serve
