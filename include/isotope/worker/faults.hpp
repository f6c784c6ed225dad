#pragma once
/// Faults that tests inject into a device worker. Programs take `no_faults`, for which nothing is compiled.
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "../core/error.hpp"

namespace isotope::worker {

/// `before(job)` is called on the worker's thread before each job, by its name; a failure takes the place of the job. `injects`: whether it is called at all.
template <class F>
concept FaultSource = requires(F& f, std::string_view job) {
  { F::injects } -> std::convertible_to<bool>;
  { f.before(job) } -> std::same_as<result<void>>;
};

struct no_faults {
  static constexpr bool injects = false;
  static result<void> before(std::string_view) { return {}; }
};
static_assert(FaultSource<no_faults>);

/// `poison`: a failure of the device that is none of the others.
enum class fault : std::uint8_t { poison, device_lost, out_of_memory, hung };

/// Copies share one plan: the next fault, and the job that it strikes.
class planned_faults {
 public:
  static constexpr bool injects = true;

  /// Strikes the next job of this name. One at a time.
  void strike(std::string_view job, fault what) const {
    const std::lock_guard lock(shared_->mutex);
    shared_->job = job;
    shared_->what = what;
    shared_->released = false;
  }
  /// Lets a hung job go on. It fails with a timeout.
  void release() const {
    {
      const std::lock_guard lock(shared_->mutex);
      shared_->released = true;
    }
    shared_->changed.notify_all();
  }
  /// Waits until a job hangs.
  void await_hung() const {
    std::unique_lock lock(shared_->mutex);
    shared_->changed.wait(lock, [&] { return shared_->hangs; });
  }

  result<void> before(std::string_view job) const {
    std::unique_lock lock(shared_->mutex);
    if (job != shared_->job) return {};
    shared_->job.clear();
    const std::string where(job);
    switch (shared_->what) {
      case fault::poison: return fail(errc::poisoned, "the device failed (injected)", where, "stop injecting faults");
      case fault::device_lost: return fail(errc::device_lost, "the device was lost (injected)", where, "stop injecting faults");
      case fault::out_of_memory: return fail(errc::out_of_memory, "an allocation failed (injected)", where, "stop injecting faults");
      case fault::hung: break;
    }
    shared_->hangs = true;
    shared_->changed.notify_all();
    shared_->changed.wait(lock, [&] { return shared_->released; });
    shared_->hangs = false;
    return fail(errc::timeout, "the device hung (injected)", where, "stop injecting faults");
  }

 private:
  struct plan {
    std::mutex mutex;
    std::condition_variable changed;
    std::string job;
    fault what = fault::poison;
    bool hangs = false, released = false;
  };
  std::shared_ptr<plan> shared_ = std::make_shared<plan>();
};
static_assert(FaultSource<planned_faults>);

}  // namespace isotope::worker
