#pragma once
/// The texts of a server: those that wait, and those that have a slot of the model.
#include <isotope/serve/metrics.hpp>
#include <isotope/serve/service.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace isotope::serve {

/// Any thread may add texts or fail all; one thread takes them and delivers their pieces. What a text calls is called under a lock, so that after its failure, which
/// may come from another thread while the model hangs, no piece follows.
class text_table {
 public:
  text_table(std::size_t room, metrics& counts) : waiting_(room), counts_(counts) {}

  std::size_t room() const { return waiting_.capacity(); }
  /// Appends all texts or none.
  accepted add(std::vector<text_job> jobs) {
    const auto n = std::int64_t(jobs.size());
    counts_.waiting += n;
    const accepted r = waiting_.push(jobs);
    if (r != accepted::yes) counts_.waiting -= n;
    return r;
  }
  void close() { waiting_.close(); }
  bool waits() const { return waiting_.size() != 0; }
  /// Whether a text has a slot or waits for one.
  bool busy() const {
    const std::lock_guard lock(mutex_);
    return live_ != 0 || waits();
  }

  void set_slots(std::size_t slots) { slots_.resize(slots); }
  /// The next text whose client is there.
  std::optional<text_job> next() {
    while (auto job = waiting_.pop_if([](const text_job&) { return true; })) {
      --counts_.waiting;
      if (!*job->cancelled) return job;
      ++counts_.cancelled;
    }
    return std::nullopt;
  }
  void put(std::size_t slot, text_job job) {
    const std::lock_guard lock(mutex_);
    if (cause_) return job.failed(*cause_);
    slots_[slot].emplace(std::move(job));
    count(1);
  }
  /// Calls end(slot) for each text whose client is gone.
  template <class End> void cancel_gone(const End& end) {
    const std::lock_guard lock(mutex_);
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
      if (!slots_[slot] || !*slots_[slot]->cancelled) continue;
      end(int(slot));
      slots_[slot].reset();
      ++counts_.cancelled;
      count(-1);
    }
  }
  /// Passes a piece on. @return whether the text goes on
  bool deliver(std::size_t slot, const text_piece& piece) {
    const std::lock_guard lock(mutex_);
    std::optional<text_job>& job = slots_[slot];
    if (!job) return false;
    ++counts_.generated_tokens;
    if (piece.last()) count(-1);  // first, so that a client that has its end does not find itself among the running ones
    if (piece.end == text_end::failed) job->failed(*piece.wrong);
    else job->piece(piece);
    if (!piece.last()) return true;
    job.reset();
    return false;
  }
  /// Answers all texts with this failure, and refuses what comes.
  void fail_all(const failure& f) {
    const std::lock_guard lock(mutex_);
    cause_ = f;
    count(-live_);
    for (auto& job : slots_)
      if (job) job->failed(f), job.reset();
    for (text_job& job : waiting_.close_and_take()) --counts_.waiting, job.failed(f);
  }

 private:
  worker::bounded_queue<text_job> waiting_;
  metrics& counts_;
  mutable std::mutex mutex_;  // of what follows
  std::vector<std::optional<text_job>> slots_;
  std::int64_t live_ = 0;
  std::optional<failure> cause_;

  void count(std::int64_t more) { counts_.running = live_ += more; }
};

}  // namespace isotope::serve
