#pragma once
/// Runs jobs on several workers and returns them in the order in which they were submitted.
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace isotope::conform {

/// Each worker has its own thread and gets one job at a time; a single worker runs in the caller's thread. Jobs with the same `key` never run
/// concurrently, so they can reuse each other's caches; null means no key.
template <class Job, class Worker> class ordered_pool {
 public:
  explicit ordered_pool(std::vector<Worker> workers) : workers_(std::move(workers)), keys_(workers_.size()) {
    if (workers_.size() > 1)
      for (std::size_t k = 0; k < workers_.size(); ++k) threads_.emplace_back([this, k] { work(k); });
  }
  ordered_pool(const ordered_pool&) = delete;
  ordered_pool& operator=(const ordered_pool&) = delete;
  /// Drops jobs that no worker has started.
  ~ordered_pool() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
    for (auto& t : threads_) t.join();
  }

  void submit(Job j) {
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
  /// Whether the oldest job is done, so that `oldest` does not wait.
  bool ready() const {
    const std::lock_guard lock(mutex_);
    return !jobs_.empty() && jobs_.front().done;
  }
  /// Returns the oldest job when it is done. There must be one.
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
  std::vector<const void*> keys_;  // key of each worker's last job
  std::vector<std::thread> threads_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<entry> jobs_;  // a deque: changes at its ends do not move the other jobs
  bool closed_ = false;

  /// Returns the oldest job that worker k may start; null: none.
  entry* job_for(std::size_t k) {
    for (entry& e : jobs_) {
      bool free = !e.begun;
      for (std::size_t other = 0; free && e.job.key != nullptr && other < keys_.size(); ++other)
        free = other == k || keys_[other] != e.job.key;
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
      keys_[k] = mine->job.key;
      lock.unlock();
      workers_[k](mine->job);
      lock.lock();
      mine->done = true;
      changed_.notify_all();
    }
  }
};

}  // namespace isotope::conform
