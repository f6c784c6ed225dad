#pragma once
/// A queue of limited length between threads: that of a device worker's jobs, and that of a server's requests.
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace isotope::worker {

/// What happens to what finds no room: it waits for it, or is refused.
enum class when_full : std::uint8_t { block, refuse };
/// Whether entries were taken over. `full`: later there may be room; `closed`: there will be none.
enum class accepted : std::uint8_t { yes, full, closed };

/// Any thread may call the functions.
template <class Entry> class bounded_queue {
 public:
  explicit bounded_queue(std::size_t capacity) : capacity_(capacity) {}

  std::size_t capacity() const { return capacity_; }
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return waiting_.size();
  }

  /// Appends all entries or none, which then stay with the caller. More entries than the capacity never find room.
  accepted push(std::vector<Entry>& all, when_full full = when_full::refuse) {
    {
      std::unique_lock lock(mutex_);
      const auto room = [&] { return closed_ || waiting_.size() + all.size() <= capacity_; };
      if (full == when_full::block) room_.wait(lock, room);
      if (closed_) return accepted::closed;
      if (!room()) return accepted::full;
      for (Entry& e : all) waiting_.push_back(std::move(e));
    }
    there_.notify_one();
    return accepted::yes;
  }
  /// Appends an entry even if the queue is full or closed.
  void push_anyway(Entry e) {
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(std::move(e));
    }
    there_.notify_one();
  }
  /// Waits for the first entry and takes it.
  Entry pop() {
    std::unique_lock lock(mutex_);
    there_.wait(lock, [&] { return !waiting_.empty(); });
    Entry first = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    room_.notify_all();
    return first;
  }
  /// Takes the first entry if there is one and may(entry). It does not wait.
  template <class May> std::optional<Entry> pop_if(const May& may) {
    std::unique_lock lock(mutex_);
    if (waiting_.empty() || !may(std::as_const(waiting_.front()))) return std::nullopt;
    std::optional<Entry> first(std::move(waiting_.front()));
    waiting_.pop_front();
    lock.unlock();
    room_.notify_all();
    return first;
  }
  /// Takes no more entries; those that are there remain.
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    room_.notify_all();
  }
  /// Takes no more entries, and gives out those that are there.
  std::deque<Entry> close_and_take() {
    std::deque<Entry> all;
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
      all.swap(waiting_);
    }
    room_.notify_all();
    return all;
  }

 private:
  const std::size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable room_, there_;
  std::deque<Entry> waiting_;
  bool closed_ = false;
};

}  // namespace isotope::worker
