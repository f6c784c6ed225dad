#pragma once
/// Threads that compute the parts of one job after another, for as long as the object lives.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace isotope {

class worker_team {
 public:
  /// `threads`: with the calling one.
  explicit worker_team(std::int64_t threads) {
    for (std::int64_t k = 1; k < threads; ++k) helpers_.emplace_back([this, k] { serve(k); });
  }
  worker_team(const worker_team&) = delete;
  worker_team& operator=(const worker_team&) = delete;
  ~worker_team() {
    ended_ = true;
    call();
    for (auto& t : helpers_) t.join();
  }
  /// As many threads as there are processors, at most 16 and at most one for each `share` of `elems` elements.
  static std::int64_t threads_for(std::int64_t elems, std::int64_t share) {
    return std::clamp<std::int64_t>(std::min<std::int64_t>(std::thread::hardware_concurrency(), elems / share), 1, 16);
  }
  std::int64_t size() const { return std::int64_t(helpers_.size()) + 1; }

  /// Calls part(0) to part(size() - 1), each on its own thread, and returns when all have returned. One call at a time.
  template <class Part> void run(const Part& part) {
    job_ = [](const void* given, std::int64_t k) { (*static_cast<const Part*>(given))(k); };
    given_ = &part;
    left_ = std::int32_t(helpers_.size());
    call();
    part(0);
    for (std::int32_t left = left_; left != 0; left = left_) left_.wait(left);
  }

 private:
  std::vector<std::thread> helpers_;
  void (*job_)(const void*, std::int64_t) = nullptr;
  const void* given_ = nullptr;
  std::atomic<bool> ended_ = false;
  std::atomic<std::int32_t> round_ = 0, left_ = 0;  // jobs begun; helpers that have not ended theirs

  void call() {
    ++round_;
    round_.notify_all();
  }
  void serve(std::int64_t k) {
    for (std::int32_t seen = 0;; ++seen) {
      round_.wait(seen);
      if (ended_) return;
      job_(given_, k);
      if (--left_ == 0) left_.notify_one();
    }
  }
};

}  // namespace isotope
