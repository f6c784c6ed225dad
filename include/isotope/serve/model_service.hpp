#pragma once
/// A model on a device worker that works on requests as long as some wait.
#include <isotope/serve/service.hpp>
#include <isotope/worker/device_worker.hpp>
#include <isotope/worker/load.hpp>

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <utility>
#include <vector>

namespace isotope::serve {

/// The worker owns the device, the model and its session (worker/device_worker.hpp). While there is work, one decode job after another is submitted to it; requests
/// wait in a queue of their own, since they take turns that jobs do not. The first job that fails is the last one: waiting, running and later requests fail with
/// its cause. A class that derives from this says what a job does, and calls `close` and `join` in its destructor.
class model_service : public service {
 public:
  void join() override {
    {
      std::unique_lock lock(mutex_);
      idle_.wait(lock, [&] { return !runs_; });
    }
    if (worker_) static_cast<void>(worker_->shut_down());
  }

 protected:
  /// Opens the device on a thread of its own, and on that thread the model. @param make  (const device<T>&) -> result<std::unique_ptr<worker::loaded_model>>
  /// @error as device_worker::start and `make`; out_of_memory
  template <Target T, class Make, worker::FaultSource Faults> result<void> load(worker::worker_options o, Faults faults, Make make) {
    o.queue.full = worker::when_full::refuse;
    auto started = worker::device_worker::start<T, device<T>, Faults>(o, std::move(faults));
    if (!started) return std::move(started).error();
    worker_.emplace(*std::move(started));
    using made = result<std::unique_ptr<worker::loaded_model>>;
    auto there = worker_
                     ->submit(worker::load_with<T>([make = std::move(make)](const device<T>& on, const auto&) -> made {
                       try {
                         return make(on);
                       } catch (const std::bad_alloc&) {
                         return fail(errc::out_of_memory, "has no memory left", "the host, while a model opens", "use a smaller model");
                       }
                     }))
                     .get();
    if (!there) return std::move(there).error();
    model_ = there->model;
    return {};
  }

  /// Appends to the queue by push() -> accepted, and lets the model work.
  template <class Push> accepted submit_by(const Push& push) {
    {
      const std::lock_guard lock(mutex_);
      const accepted r = push();
      if (r != accepted::yes || std::exchange(runs_, true)) return r;
    }
    run();
    return accepted::yes;
  }

  /// The next job for the model; none: there is nothing to do. No two calls of this and the next two overlap.
  virtual std::optional<worker::decode> next(worker::model_handle model) = 0;
  virtual void took(std::vector<worker::named_numbers> answer) = 0;
  /// Answers everything with this failure, and refuses what comes.
  virtual void fail_all(const failure& f) = 0;
  /// Whether something waits that `next` has not seen.
  virtual bool waits() const = 0;

 private:
  std::mutex mutex_;
  std::condition_variable idle_;
  bool runs_ = false;  // a job is under way, or about to be
  worker::model_handle model_;
  std::optional<worker::device_worker> worker_;

  /// Submits the next job. Its answer calls this again, on the worker's thread.
  void run() {
    for (;;) {
      if (auto job = next(model_)) {
        worker_->submit(*std::move(job)).then([this](result<std::vector<worker::named_numbers>> answer) {
          if (answer) {
            took(*std::move(answer));
          } else {
            failure cause = std::move(answer).error();
            cause.code = errc::poisoned;
            set_broken(cause);
            fail_all(cause);
          }
          run();
        });
        return;
      }
      const std::lock_guard lock(mutex_);
      if (waits()) continue;
      runs_ = false;
      idle_.notify_all();
      return;
    }
  }
};

}  // namespace isotope::serve
