#pragma once
/// Jobs done by several workers at a time, given back in the order in which they were handed in.
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace isotope::conform {

/// A worker is called with one job at a time, in a thread of its own; a single one in the caller's. Jobs of one `kin`, a pointer, are not begun by two
/// workers at a time, since what one made for them is there for the next; null: those that anybody may begin.
template <class Job, class Worker> class crew {
 public:
  explicit crew(std::vector<Worker> workers) : workers_(std::move(workers)), kin_(workers_.size()) {
    if (workers_.size() > 1)
      for (std::size_t k = 0; k < workers_.size(); ++k) threads_.emplace_back([this, k] { work(k); });
  }
  crew(const crew&) = delete;
  crew& operator=(const crew&) = delete;
  /// Jobs that nobody has begun are left undone.
  ~crew() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
    for (auto& t : threads_) t.join();
  }

  void hand_in(Job j) {
    {
      const std::lock_guard lock(mutex_);
      jobs_.push_back({std::move(j)});
    }
    if (threads_.empty()) {
      workers_[0](jobs_.back().job);
      jobs_.back().done = true;
    } else {
      changed_.notify_all();
    }
  }
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return jobs_.size();
  }
  /// Whether the oldest job is done: `oldest` does not wait.
  bool ready() const {
    const std::lock_guard lock(mutex_);
    return !jobs_.empty() && jobs_.front().done;
  }
  /// The oldest job, done. There must be one.
  Job oldest() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return jobs_.front().done; });
    Job j = std::move(jobs_.front().job);
    jobs_.pop_front();
    return j;
  }

 private:
  struct entry {
    Job job;
    bool begun = false, done = false;
  };
  std::vector<Worker> workers_;
  std::vector<const void*> kin_;  // of the last job of each worker
  std::vector<std::thread> threads_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<entry> jobs_;  // whose ends move without moving the others
  bool closed_ = false;

  /// The oldest job that worker k may begin; null: none.
  entry* job_for(std::size_t k) {
    for (entry& e : jobs_) {
      bool free = !e.begun;
      for (std::size_t other = 0; free && e.job.kin != nullptr && other < kin_.size(); ++other)
        free = other == k || kin_[other] != e.job.kin;
      if (free) return &e;
    }
    return nullptr;
  }
  void work(std::size_t k) {
    std::unique_lock lock(mutex_);
    for (;;) {
      entry* mine = nullptr;
      changed_.wait(lock, [&] { return closed_ || (mine = job_for(k)) != nullptr; });
      if (closed_) return;
      mine->begun = true;
      kin_[k] = mine->job.kin;
      lock.unlock();
      workers_[k](mine->job);
      lock.lock();
      mine->done = true;
      changed_.notify_all();
    }
  }
};

}  // namespace isotope::conform
