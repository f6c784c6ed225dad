#pragma once
/// Notices work that hangs, such as a step between ranks or a job of a device worker, aborts it, and, where even that does not help, tells the program, which may end the
/// process.
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "call.hpp"

namespace isotope {

/// Where a watchdog gets the time from. `wait` returns after at most `seconds`, or earlier, when `wake` is called by another thread.
struct watch_clock {
  virtual ~watch_clock() = default;
  virtual double now() = 0;
  virtual void wait(double seconds) = 0;
  virtual void wake() = 0;
};

/// The time since the machine started.
class machine_clock final : public watch_clock {
 public:
  double now() override { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
  void wait(double seconds) override {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return woken_; });
    woken_ = false;
  }
  void wake() override {
    {
      const std::lock_guard lock(mutex_);
      woken_ = true;
    }
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false;
};

struct watchdog_options {
  double step_seconds = 300;  // how long a step may take before its group is ended
  double abort_seconds = 30;  // how long the step may take to end after that
};

/// A thread that watches steps. The rank's thread says when a step begins and ends; if it takes longer than step_seconds, `abort` is called once, with what
/// hung, from the watchdog's thread; if the step still has not ended abort_seconds later, `give_up` is called once, which may end the process. The watchdog
/// itself ends nothing. A step may have a limit of its own, and may say what it does: while it waits for other ranks it has abort_seconds more, so that the
/// watchdog of the rank that hangs is the first to speak, and names it.
///
/// For example: watchdog w(options, clock, [&](failure f) { group.abort(f); }, [](const failure& f) { print(f.line()); end_process(); });
class watchdog {
 public:
  using told = std::function<void(const failure&)>;

  /// The clock and what the callbacks use outlive the watchdog.
  watchdog(const watchdog_options& o, watch_clock& clock, told abort, told give_up)
      : options_(o), clock_(clock), abort_(std::move(abort)), give_up_(std::move(give_up)), thread_([this] { watch(); }) {}
  watchdog(const watchdog&) = delete;
  watchdog& operator=(const watchdog&) = delete;
  /// Waits for a callback in progress.
  ~watchdog() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    clock_.wake();
    thread_.join();
  }

  /// A step begins. `what` is for people, such as "step 120 of rank 3"; at most one step runs at a time.
  /// @param seconds  how long this step may take; 0: step_seconds of the options
  void begin(std::string what, double seconds = 0) {
    {
      const std::lock_guard lock(mutex_);
      step_ = {clock_.now(), std::move(what), seconds > 0 ? seconds : options_.step_seconds};
    }
    clock_.wake();
  }
  /// What the step does from now on, for people, such as "was writing the file".
  /// @param waits  whether it waits for other ranks
  void tell(std::string doing, bool waits = false) {
    {
      const std::lock_guard lock(mutex_);
      if (!step_) return;
      step_->doing = std::move(doing);
      if (step_->waits == waits) return;
      step_->waits = waits;
    }
    clock_.wake();
  }
  /// How long a step may take that has no limit of its own.
  double step_seconds() const { return options_.step_seconds; }
  /// The step has ended, well or not.
  void end() {
    const std::lock_guard lock(mutex_);
    step_.reset();
  }
  /// Watches a scope, whichever way it is left.
  class watched {
   public:
    /// @param seconds, doing  as those of begin and tell
    watched(watchdog& w, std::string what, double seconds = 0, std::string doing = {}) : watchdog_(w) {
      w.begin(std::move(what), seconds);
      if (!doing.empty()) w.tell(std::move(doing));
    }
    watched(const watched&) = delete;
    watched& operator=(const watched&) = delete;
    ~watched() { watchdog_.end(); }

   private:
    watchdog& watchdog_;
  };

 private:
  enum class stage : std::uint8_t { runs, aborted, given_up };
  struct step {
    double began = 0;
    std::string what;
    double seconds = 0;
    std::string doing{};
    bool waits = false;
    double aborted = 0;  // when it was
    stage at = stage::runs;
  };
  const watchdog_options options_;
  watch_clock& clock_;
  const told abort_, give_up_;
  std::mutex mutex_;
  std::optional<step> step_;
  bool stop_ = false;
  std::thread thread_;  // last: it uses what is above

  void watch() {
    constexpr double idle = 3600;
    for (;;) {
      double pause = idle;
      std::optional<failure> hung;
      bool last = false;
      {
        const std::lock_guard lock(mutex_);
        if (stop_) return;
        if (step_ && step_->at != stage::given_up) {
          last = step_->at == stage::aborted;
          const double now = clock_.now(), more = last || step_->waits ? options_.abort_seconds : 0;
          const double left = (last ? step_->aborted : step_->began + step_->seconds) + more - now;
          if (left <= 0) {
            if (!last) step_->aborted = now + left;
            step_->at = last ? stage::given_up : stage::aborted;
            hung = last ? still_hangs() : hangs();
          } else if (left < idle) {
            pause = left;
          }
        }
      }
      if (!hung) clock_.wait(pause);
      else (last ? give_up_ : abort_)(*hung);
    }
  }
  failure hangs() const {
    return fail(
        errc::timeout,
        step_->what + " took longer than " + comm::seconds_text(step_->seconds) + (step_->doing.empty() ? "" : ": it " + step_->doing),
        "watchdog", "look at the other ranks, or give it more time");
  }
  failure still_hangs() const {
    return fail(errc::timeout,
                step_->what + " did not end within " + comm::seconds_text(options_.abort_seconds) + " after its timeout" +
                    (step_->doing.empty() ? "" : ": it " + step_->doing),
                "watchdog", "end the process, since the driver may never return, and resume from the last checkpoint");
  }
};

}  // namespace isotope
