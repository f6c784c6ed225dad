#pragma once
/// Limits the time of jobs: a thread that waits beside the worker's and acts while that hangs.
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "../core/error.hpp"

namespace isotope::worker {

struct watchdog_options {
  double step_timeout_seconds = 0;     // of a step, an evaluation, a decode or a check of a communicator; 0: no limit
  double abort_deadline_seconds = 30;  // after which a job that still runs is given up, counted from the timeout
  /// Called once, on the watchdog's thread, when a job is given up: its thread hangs for good, and the program should log this and end. It must not throw.
  std::function<void(const failure&)> on_hung = {};
};

/// `late` is called at the timeout and may answer the job and abort communicators, which usually makes the job return. `hung` is called at the deadline, before
/// the program's `on_hung`.
class watchdog {
 public:
  using notice = std::function<void(const failure&)>;

  watchdog(std::string owner, watchdog_options o) : owner_(std::move(owner)), options_(std::move(o)) {}
  watchdog(const watchdog&) = delete;
  watchdog& operator=(const watchdog&) = delete;
  ~watchdog() { stop(); }

  /// Starts the thread, unless there is no limit.
  void start(notice late, notice hung) {
    late_ = std::move(late);
    hung_ = std::move(hung);
    if (options_.step_timeout_seconds > 0) thread_ = std::thread([this] { watch(); });
  }
  bool watches() const { return thread_.joinable(); }
  /// A job begins.
  void begin(std::string_view job) {
    {
      const std::lock_guard lock(mutex_);
      job_ = job;
      began_ = clock::now();
      ++round_;
    }
    changed_.notify_one();
  }
  /// It has ended.
  void end() {
    {
      const std::lock_guard lock(mutex_);
      job_.clear();
      ++round_;
    }
    changed_.notify_one();
  }
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_one();
    if (thread_.joinable()) thread_.join();
  }

 private:
  using clock = std::chrono::steady_clock;
  std::string owner_;
  watchdog_options options_;
  notice late_, hung_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string job_;  // empty: none runs
  clock::time_point began_{};
  std::uint64_t round_ = 0;
  bool stopped_ = false;
  std::thread thread_;

  void watch() {
    std::unique_lock lock(mutex_);
    while (!stopped_) {
      if (job_.empty()) {
        changed_.wait(lock, [&] { return stopped_ || !job_.empty(); });
        continue;
      }
      if (ends_within(lock, options_.step_timeout_seconds)) continue;
      if (!tell(lock, late_, options_.step_timeout_seconds, "a longer timeout, or look for the rank that does not take part")) continue;
      const double all = options_.step_timeout_seconds + options_.abort_deadline_seconds;
      if (ends_within(lock, all)) continue;
      if (!tell(lock, hung_, all, "end the process: the driver does not return")) continue;
      if (options_.on_hung) options_.on_hung(failure_after(all, "end the process: the driver does not return"));
      return;
    }
  }
  /// Waits for the end of the job that runs. False: it still runs so long after its begin.
  bool ends_within(std::unique_lock<std::mutex>& lock, double seconds) {
    const auto until = began_ + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(seconds));
    return changed_.wait_until(lock, until, [this, round = round_] { return stopped_ || round_ != round; });
  }
  failure failure_after(double seconds, const char* fix) const {
    return fail(errc::timeout, "it did not end within " + std::to_string(seconds) + " s", owner_ + ", " + job_, fix);
  }
  /// Calls a notice without the lock. False: the job has ended meanwhile.
  bool tell(std::unique_lock<std::mutex>& lock, const notice& what, double seconds, const char* fix) {
    const auto round = round_;
    const failure why = failure_after(seconds, fix);
    lock.unlock();
    what(why);
    lock.lock();
    return round_ == round && !stopped_;
  }
};

}  // namespace isotope::worker
