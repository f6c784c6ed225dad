#pragma once
/// A device worker: one named thread that owns a device for life, and the jobs that other threads submit to it.
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <variant>

#include "../backend/thread_name.hpp"
#include "../comm/watchdog.hpp"
#include "../core/gpu_options.hpp"
#include "device_host.hpp"
#include "faults.hpp"
#include "job_queue.hpp"

namespace isotope::worker {

/// How long jobs may take.
struct watch_options {
  double step_timeout_seconds = 0;     // of a step, an evaluation, a decode or a check of a communicator; 0: no limit
  double abort_deadline_seconds = 30;  // after which a job that still runs is given up, counted from the timeout
  /// Called once, on the watchdog's thread, when a job is given up: its thread hangs for good, and the program should log this and end. It must not throw.
  std::function<void(const failure&)> on_hung = {};
};

struct worker_options {
  gpu_options device = {};  // those that the backend has are used
  int index =
      0;  // in the thread's name; of a gpu also the device's index, unless device.name is given; -1: 0, and the device that open() prefers
  queue_options queue = {};
  watch_options watch = {};
};

/// The name of a worker's thread, at most 15 characters, such as cpu-dev-0: it begins with the backend's `short_name`, if it has one, or its name.
template <class B> std::string thread_name_of(int index) {
  std::string_view called = B::name;
  if constexpr (requires { B::short_name; }) called = B::short_name;
  return std::string(called.substr(0, 6)) + "-dev-" + std::to_string(index);
}

/// The handle of a running worker. It may be moved, and any thread may submit; its destructor shuts the worker down and answers what waits with worker_gone.
///
///     iso::result<double> first_loss(iso::dynamic_plan plan, std::vector<float> x, std::vector<float> y) {
///       auto w = worker::device_worker::start<target>();
///       if (!w) return w.error();
///       auto load = worker::load_plans<target>(std::move(plan));
///       load.seed = 3;
///       const auto loaded = w->submit(std::move(load)).get();
///       if (!loaded) return loaded.error();
///       const auto step = w->submit(worker::step{loaded->model, {{{"x", x}, {"target", y}}}, {}}).get();
///       if (!step) return step.error();
///       return step->loss;
///     }
///
/// A failure of the device (device_lost, a timeout of its driver, an exception) poisons the worker: the job gets the failure, every other job that waits or
/// comes is answered with `poisoned` and this first cause, drops are acknowledged, and the device is not touched again.
class device_worker {
 public:
  /// Starts a thread and opens the device on it. `Device` is device<T> or derives from it. @error as device<T>::open; out_of_memory: no thread
  template <Target T, class Device = device<T>, FaultSource Faults = no_faults>
  static result<device_worker> start(const worker_options& o = {}, Faults faults = {}) {
    auto s = std::make_shared<shared>(thread_name_of<typename T::backend>(o.index < 0 ? 0 : o.index), o);
    auto options = options_for<typename T::backend>(o.device);
    if constexpr (!Device::on_host)
      if (options.name.empty() && o.index >= 0) options.name = std::to_string(o.index);
    promise<std::monostate> opened;
    auto ready = opened.get_reply();
    device_worker w;
    try {
      w.thread_ = std::make_unique<joined_thread>(
          std::thread([s, options = std::move(options), faults = std::move(faults), opened = std::move(opened)]() mutable {
            run<T, Device>(*s, options, faults, opened);
            s->finish();
          }));
      s->watch(o.watch);
    } catch (const std::exception& e) {
      if (w.thread_ != nullptr) static_cast<void>(s->queue.push(worker::shut_down{waiting_jobs::refuse}));
      return fail(errc::out_of_memory, std::string("no thread could be started: ") + e.what(), s->name, "start fewer threads");
    }
    if (auto r = ready.get(); !r) return std::move(r).error();
    w.shared_ = std::move(s);
    return w;
  }

  device_worker(device_worker&&) noexcept = default;
  device_worker& operator=(device_worker&& o) noexcept {
    if (this == &o) return *this;
    static_cast<void>(shut_down(waiting_jobs::refuse));
    thread_ = std::move(o.thread_);
    shared_ = std::move(o.shared_);
    return *this;
  }
  ~device_worker() { static_cast<void>(shut_down(waiting_jobs::refuse)); }

  /// Gives a job to the worker. It is answered exactly once. @error (of the reply) queue_full, poisoned, worker_gone, or as the job
  template <Job J> reply<typename J::reply> submit(J job) const { return shared_->queue.push(std::move(job)); }

  /// The name of the thread.
  const std::string& name() const { return shared_->name; }
  device_info info() const { return shared_->info; }
  /// The first cause, where the device failed.
  std::optional<failure> poisoned() const { return shared_->queue.cause(); }
  /// Jobs that wait, for metrics.
  std::size_t waiting() const { return shared_->queue.waiting(); }
  /// Ends the groups that the worker has joined, such as after the failure of another rank: a job that waits for a peer fails with this cause. The worker
  /// stays usable.
  void abort_groups(const failure& cause) const { shared_->groups->abort(cause); }

  /// Ends the thread and waits for it. Any number of calls, from any threads, also while others submit; on the worker's own thread it does not wait.
  /// @error timeout: the thread hangs in a job that the watchdog gave up, and is left behind
  result<void> shut_down(waiting_jobs waiting = waiting_jobs::run) const {
    if (shared_ == nullptr) return {};
    static_cast<void>(submit(worker::shut_down{waiting}));
    return thread_->join(*shared_);
  }

 private:
  /// What the worker's thread, the watchdog and submitters share.
  struct shared {
    const std::string name;
    const std::uint64_t number = next_number();
    job_queue queue;
    std::shared_ptr<group_list> groups = std::make_shared<group_list>();
    device_info info;

    shared(std::string called, const worker_options& o) : name(std::move(called)), queue(name, o.queue) {}

    void watch(const watch_options& o) {
      if (o.step_timeout_seconds <= 0) return;
      dog.emplace(
          watchdog_options{.step_seconds = o.step_timeout_seconds, .abort_seconds = o.abort_deadline_seconds}, clock_,
          [this](const failure& why) { late(why); },
          [this, tell = o.on_hung](const failure& why) {
            give_up();
            if (tell) tell(why);
          });
    }

    void finish() {
      {
        const std::lock_guard lock(mutex_);
        finished_ = true;
      }
      ended_.notify_all();
    }
    /// Waits until the thread has ended. False: it hangs.
    bool await_end() {
      std::unique_lock lock(mutex_);
      ended_.wait(lock, [&] { return finished_ || hung_; });
      return finished_;
    }
    /// What answers the job that runs, if the watchdog has to.
    void current(std::function<void(const failure&)> answer) {
      const std::lock_guard lock(mutex_);
      answer_ = std::move(answer);
    }
    /// On the watchdog's thread.
    void late(const failure& why) {
      queue.poison(why);
      std::function<void(const failure&)> answer;
      {
        const std::lock_guard lock(mutex_);
        answer = std::exchange(answer_, nullptr);
      }
      if (answer) answer(why);
      groups->abort(why);
    }
    void give_up() {
      {
        const std::lock_guard lock(mutex_);
        hung_ = true;
      }
      ended_.notify_all();
    }

   private:
    std::mutex mutex_;
    std::condition_variable ended_;
    bool finished_ = false, hung_ = false;
    std::function<void(const failure&)> answer_;
    machine_clock clock_;

    static std::uint64_t next_number() {
      static std::atomic<std::uint64_t> last = 0;
      return ++last;
    }

   public:
    std::optional<watchdog> dog;  // where the time of jobs is limited; last: its thread uses what is above
  };
  /// A thread that is joined once, whoever asks first.
  class joined_thread {
   public:
    explicit joined_thread(std::thread t) : thread_(std::move(t)) {}
    joined_thread(const joined_thread&) = delete;
    joined_thread& operator=(const joined_thread&) = delete;
    ~joined_thread() {
      if (thread_.joinable()) thread_.get_id() == std::this_thread::get_id() ? thread_.detach() : thread_.join();
    }
    result<void> join(shared& s) {
      if (s.queue.is_served_here()) return {};
      const bool ended = s.await_end();
      const std::lock_guard lock(mutex_);
      if (ended) {
        if (thread_.joinable()) thread_.join();
        s.dog.reset();
        return {};
      }
      if (thread_.joinable()) thread_.detach();
      return fail(errc::timeout, "its thread hangs in a job and was left behind", s.name, "end the process");
    }

   private:
    std::mutex mutex_;
    std::thread thread_;
  };

  std::shared_ptr<shared> shared_;
  std::unique_ptr<joined_thread> thread_;

  device_worker() = default;

  /// The thread's body.
  template <Target T, class Device, class Options, class Faults>
  static void run(shared& s, const Options& options, Faults& faults, const promise<std::monostate>& opened) {
    name_this_thread(s.name);
    s.queue.served_here();
    auto device = without_exceptions(s, "opening the device", [&] { return Device::open(options); });
    if (!device) {
      opened.answer(std::move(device).error());
      return;
    }
    device_host<T, Device> host(*std::move(device), s.name, s.number, s.groups);
    s.info = host.info();
    opened.answer(std::monostate{});
    const every_job handle(host);
    bool abandoned = false, goes_on = true;
    while (goes_on) {
      queued_job next = s.queue.pop();
      goes_on = std::visit(
          [&]<class J>(queued<J>& q) {
            constexpr bool ends = std::is_same_v<J, worker::shut_down>;
            auto answer = abandoned && !ends ? result<typename J::reply>(*s.queue.cause()) : guarded(s, handle, faults, q);
            if (!answer && breaks_device<J>(answer.error()))
              s.queue.poison(answer.error());  // what is submitted after the answer is refused
            if (const auto cause = s.queue.cause(); cause && !std::exchange(abandoned, true)) host.abandon(*cause);
            q.answer.answer(std::move(answer));
            return !ends;
          },
          next);
    }
  }
  /// Runs one job under the watchdog.
  template <class Handle, class Faults, Job J>
  static result<typename J::reply> guarded(shared& s, const Handle& handle, Faults& faults, queued<J>& q) {
    const bool watched = J::timed && s.dog;
    if (watched) {
      s.current([to = q.answer.shared()](const failure& why) { to->answer(why); });
      s.dog->begin(s.name + ", " + std::string(J::name));
    }
    auto done = without_exceptions(s, J::name, [&]() -> result<typename J::reply> {
      if constexpr (Faults::injects)
        if (auto r = faults.before(J::name); !r) return std::move(r).error();
      return handle(q.job);
    });
    if (watched) {
      s.dog->end();
      s.current(nullptr);
    }
    return done;
  }
  template <class Call> static auto without_exceptions(const shared& s, std::string_view what, const Call& call) -> decltype(call()) {
    const auto threw = [&](const std::string& text) {
      return fail(errc::poisoned, std::string(what) + " threw an exception: " + text, s.name,
                  "return a result from functions of the program; report a library that throws");
    };
    try {
      return call();
    } catch (const std::exception& e) { return threw(e.what()); } catch (...) {
      return threw("it is no std::exception");
    }
  }
};

}  // namespace isotope::worker
