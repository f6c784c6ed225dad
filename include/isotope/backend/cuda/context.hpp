#pragma once
/// One opened device and its stream. All work is submitted and waited for here, and the loss of the device is noticed here.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "devices.hpp"
#include "options.hpp"
#include "usual_times.hpp"

namespace isotope::cuda {

/// Objects of an application that isotope is to use: a context of the device and, if not null, a stream of it. The application keeps them alive longer than
/// every object made from them.
struct native_handles {
  context_handle context = nullptr;
  stream_handle stream = nullptr;
};

/// Counts of what was done on a device since it was opened.
struct context_counters {
  std::atomic<std::int64_t> submits = 0, allocations = 0, objects = 0;
};

/// Makes a context the calling thread's current one as long as it lives.
class current_context {
 public:
  current_context(const driver& d, context_handle c) : driver_(d) { pushed_ = d->push_context(c) == status::success; }
  /// Whether the driver took the context.
  explicit operator bool() const { return pushed_; }
  current_context(const current_context&) = delete;
  current_context& operator=(const current_context&) = delete;
  ~current_context() {
    context_handle ignored = nullptr;
    if (pushed_) driver_->pop_context(&ignored);
  }

 private:
  const driver& driver_;
  bool pushed_ = false;
};

class context {
 public:
  context() = default;
  context(const context&) = delete;
  context& operator=(const context&) = delete;
  ~context() {
    if (context_ == nullptr || hung_) return;  // closing would wait
    {
      const auto here = current();
      if (!lost_) f()->synchronize_stream(stream_);
      for (const auto& e : pending_) f()->destroy_event(e.event);
      for (const auto e : spare_) f()->destroy_event(e);
      if (owns_stream_ && stream_ != nullptr) f()->destroy_stream(stream_);
    }
    if (retained_) f()->release_primary_context(physical_.handle);
  }

  /// Opens the primary context of a device, which cuBLASLt and NCCL share. `needs`: of the code that will run.
  /// @error no_device, unknown_device with the devices seen, missing_feature, invalid_argument for a negative timeout
  static result<std::shared_ptr<context>> open(const cuda::options& o, const code_needs& needs) {
    auto c = std::make_shared<context>();
    if (auto r = c->find(o, needs, -1); !r) return r.error();
    if (const auto s = c->f()->retain_primary_context(&c->context_, c->physical_.handle); s != status::success) {
      c->context_ = nullptr;
      return c->failed(s, "opening " + c->physical_.name);
    }
    c->retained_ = true;
    if (auto r = c->prepare(nullptr); !r) return r.error();
    return c;
  }
  /// Uses objects of an application. @error no_device, missing_feature, invalid_argument
  static result<std::shared_ptr<context>> adopt(const native_handles& h, const cuda::options& o, const code_needs& needs) {
    if (h.context == nullptr)
      return fail(errc::invalid_argument, "the adopted context is null", "cuda", "give a context, or open the device without one");
    auto d = driver::open(o.diagnose.driver_library);
    if (!d) return d.error();
    device_handle device = 0;
    {
      const current_context here(**d, h.context);
      if (!here)
        return fail(errc::invalid_argument, "the adopted context cannot be made current", "cuda", "adopt a context that was not destroyed");
      if (const auto s = (**d)->context_device(&device); s != status::success)
        return cuda::failed(**d, s, "asking the adopted context for its device");
    }
    auto c = std::make_shared<context>();
    if (auto r = c->find(o, needs, device); !r) return r.error();
    c->context_ = h.context;
    if (auto r = c->prepare(h.stream); !r) return r.error();
    return c;
  }

  const driver& f() const { return *driver_; }
  const std::shared_ptr<const driver>& library() const { return driver_; }
  context_handle handle() const { return context_; }
  stream_handle stream() const { return stream_; }
  native_handles handles() const { return {context_, stream_}; }
  const physical_device& physical() const { return physical_; }
  device_info info() const { return describe(physical_, index_, driver_->version()); }
  /// Whether nothing more is submitted, since the device failed or hangs.
  bool lost() const { return lost_; }
  /// Whether work did not end in time. It may go on for ever, so nothing may be called that waits for it: what it uses stays allocated.
  bool hung() const { return hung_; }
  current_context current() const { return {*driver_, context_}; }

  /// Launches a graph; returns the value that the timeline has when it is complete. @error device_lost, out_of_memory
  result<std::uint64_t> submit(executable_handle graph) {
    return submitted("launching a graph", [&] { return f()->launch_graph(graph, stream_); }, graph);
  }
  /// Puts other work on the stream by calling `work`, which returns a status; returns the value that the timeline has when it is complete. `which` tells work
  /// that comes again and again from other work.
  template <class Work> result<std::uint64_t> submitted(const char* what, const Work& work, const void* which = nullptr) {
    const std::lock_guard lock(mutex_);
    if (lost_) return gone("submitting to a lost device");
    const auto fault = options.diagnose.fault;
    if (fault != injected_fault::none && counters.submits >= options.diagnose.fault_after) {
      if (fault == injected_fault::out_of_memory) return failed(status::out_of_memory, std::string(what) + " (injected)");
      if (fault == injected_fault::device_lost) return struck(std::string(what) + " (injected)");
    }
    const auto here = current();
    if (const auto s = work(); s != status::success) return dead(s, what);
    event_handle e = nullptr;
    if (!spare_.empty()) {
      e = spare_.back();
      spare_.pop_back();
    } else {
      constexpr unsigned no_timing = 2;
      if (const auto s = f()->create_event(&e, no_timing); s != status::success) return dead(s, "creating an event");
      ++counters.objects;
    }
    if (const auto s = f()->record_event(e, stream_); s != status::success) {
      spare_.push_back(e);
      return dead(s, what);
    }
    ++counters.submits;
    pending_.push_back({++submitted_, e, which, now()});
    return submitted_;
  }
  /// Waits until the timeline has reached `value`. If more work is queued behind it, the end is noticed late, up to some percent of the time that the work
  /// takes, and the wait costs the thread one or two looks. @error device_lost, timeout (after either, the device counts as lost)
  result<void> wait(std::uint64_t value) {
    if (lost_) return gone("waiting for a lost device");
    if (options.diagnose.fault == injected_fault::hung && counters.submits > options.diagnose.fault_after) {
      settle();
      lost_ = true;
      return late("waiting for work (injected)");
    }
    std::optional<short_sleeps> precise;
    double begin = now(), seen = 0;  // seen: how long the work had run when it was last found unfinished
    for (;;) {
      double pause = 0;
      {
        const std::lock_guard lock(mutex_);
        const std::size_t count = pending_up_to(value);
        if (count == 0) return {};
        const auto here = current();
        const bool more = count < pending_.size();
        const auto s = f()->query_event(pending_[count - 1].event);  // if it has ended, so have those before it
        const double ran = now() - std::max(pending_.front().submitted, ended_);
        if (s == status::success) {
          learn(count, seen, ran, more);
          retire(count);
          return {};
        }
        if (s != status::not_ready) return dead(s, "waiting for work");
        seen = ran;
        if (now() - begin > options.timeout_seconds) {  // which is the time of one piece of work
          const auto first = count == 1 ? s : f()->query_event(pending_.front().event);
          if (first == status::not_ready) return hangs("work");
          if (first != status::success) return dead(first, "waiting for work");
          retire(1);
          begin = now(), seen = 0;
          continue;
        }
        const double usual = usual_of(count);
        pause = more ? usual_times::long_pause(usual, ran) : usual_times::spins(usual, ran) ? 0 : usual_times::pause_of(usual, ran);
        if (!more && pause > 0 && !precise) precise.emplace();
      }
      if (pause == 0) std::this_thread::yield();  // other threads get the mutex, too
      else std::this_thread::sleep_for(std::chrono::duration<double>(std::min(pause, options.timeout_seconds)));
    }
  }
  /// Waits until the device has passed an event that was recorded on the stream after `what`, which is no submission. @error as `wait`
  result<void> wait_for(event_handle e, const std::string& what) {
    const short_sleeps precise;
    for (const double begin = now();;) {
      {
        const std::lock_guard lock(mutex_);
        if (lost_) return gone("waiting for " + what);
        const auto here = current();
        const auto s = f()->query_event(e);
        if (s == status::success) return {};
        if (s != status::not_ready) return dead(s, "waiting for " + what);
      }
      const double elapsed = now() - begin;
      if (elapsed > options.timeout_seconds) return hangs(what);
      std::this_thread::sleep_for(std::chrono::duration<double>(usual_.pause(nullptr, elapsed)));
    }
  }
  /// Called once after the device is opened and before kernels are recorded, where cuBLASLt was found.
  void use_blas() { physical_.limits.blas = true; }
  /// Plans that are recorded after this have the variants whose names begin so (diagnostics::variant).
  void ask_for(std::string variant) { physical_.limits.switches.variant = std::move(variant); }
  /// The memory of the device. @error as the driver reports
  result<device_memory> memory_left() const {
    std::size_t free = 0, total = 0;
    const auto here = current();
    if (const auto s = f()->memory_info(&free, &total); s != status::success) return failed(s, "asking for free memory");
    return device_memory{std::int64_t(free), std::int64_t(total)};
  }
  /// The free bytes of the device's memory; all of it if the driver does not say.
  std::int64_t free_bytes() const {
    std::size_t free = 0, total = 0;
    const auto here = current();
    return f()->memory_info(&free, &total) == status::success ? std::int64_t(free) : physical_.memory;
  }
  failure failed(status s, std::string asked) const { return cuda::failed(*driver_, s, std::move(asked), physical_.name); }

  context_counters counters;
  cuda::options options;

 private:
  struct submission_event {
    std::uint64_t value = 0;
    event_handle event = nullptr;
    const void* work = nullptr;
    double submitted = 0;  // seconds, as of now()
  };
  std::shared_ptr<const driver> driver_;
  physical_device physical_;
  int index_ = 0;
  context_handle context_ = nullptr;
  stream_handle stream_ = nullptr;
  bool retained_ = false, owns_stream_ = false;
  std::uint64_t submitted_ = 0;
  std::vector<submission_event> pending_;  // in the order of submission; few at a time
  std::vector<event_handle> spare_;
  usual_times usual_;
  double ended_ = 0;  // when the end of the latest work was noticed
  std::mutex mutex_;
  std::atomic<bool> lost_ = false, hung_ = false;

  /// How many pieces of work have a value up to this one.
  std::size_t pending_up_to(std::uint64_t value) const {
    std::size_t n = 0;
    while (n < pending_.size() && pending_[n].value <= value) ++n;
    return n;
  }
  /// The seconds that the first `count` pieces of work usually take together; 0: unknown.
  double usual_of(std::size_t count) const {
    double all = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const double one = usual_.of(pending_[i].work);
      if (one == 0) return 0;
      all += one;
    }
    return all;
  }
  /// Remembers the time of the first `count` pieces of work, which ended between `before` and `after` seconds, if they are all the same.
  void learn(std::size_t count, double before, double after, bool long_pauses) {
    const void* const work = pending_.front().work;
    for (std::size_t i = 0; i < count; ++i)
      if (work == nullptr || pending_[i].work != work) return;
    const double n = double(count);
    if (long_pauses) usual_.add_after_long_pause(work, before / n, after / n);
    else usual_.add(work, before / n, after / n);
  }
  /// Forgets the first `count` pieces of work, which have ended.
  void retire(std::size_t count) {
    ended_ = now();
    for (std::size_t i = 0; i < count; ++i) spare_.push_back(pending_[i].event);
    pending_.erase(pending_.begin(), pending_.begin() + std::ptrdiff_t(count));
  }
  static double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
  failure dead(status s, std::string asked) {
    if (breaks_context(s)) lost_ = true;
    return failed(s, std::move(asked));
  }
  failure gone(std::string asked) const {
    return fail(errc::device_lost, std::move(asked), physical_.name, "open the device again, or another one, and load the last checkpoint");
  }
  failure hangs(const std::string& what) {
    lost_ = hung_ = true;
    return late(what + " did not finish within " + std::to_string(options.timeout_seconds) + " s");
  }
  failure late(std::string asked) const {
    return fail(errc::timeout, std::move(asked), physical_.name, "another device, a smaller batch, or a longer timeout");
  }
  /// Waits for the device, which works although a fault is reported and may still use memory that callers free after the error.
  void settle() {
    const auto here = current();
    f()->synchronize_stream(stream_);
  }
  failure struck(std::string asked) {
    settle();
    lost_ = true;
    return gone(std::move(asked));
  }

  /// Finds the device: the one with this handle, or the one that the options name if it is negative.
  result<void> find(const cuda::options& o, const code_needs& needs, device_handle wanted) {
    if (!(o.timeout_seconds >= 0))
      return fail(errc::invalid_argument, "timeout_seconds is " + std::to_string(o.timeout_seconds) + ", not a number of seconds from 0 on",
                  "device options", "leave it at 60, or give infinity for no limit");
    options = o;
    auto d = driver::open(o.diagnose.driver_library);
    if (!d) return d.error();
    driver_ = *std::move(d);
    const auto all = devices_of(*driver_, needs);
    std::size_t at = all.size();
    for (std::size_t k = 0; k < all.size(); ++k)
      if (all[k].handle == wanted) at = k;
    if (wanted < 0) {
      auto chosen = choose(all, o.name);
      if (!chosen) return chosen.error();
      at = *chosen;
    }
    if (at == all.size())
      return fail(errc::no_device, "the adopted context is of a device that the driver does not list", "cuda", "adopt another context");
    physical_ = all[at];
    index_ = int(at);
    if (!physical_.missing.empty()) return lacks(physical_, "cuda");
    auto& switches = physical_.limits.switches;
    switches.no_matrix_units = o.diagnose.no_matrix_units;
    switches.large_kernels = o.diagnose.large_kernels;
    switches.split_k = o.diagnose.split_k;
    switches.launch_size = o.diagnose.launch_size;
    switches.variant = o.diagnose.variant;
    if (const auto n = switches.launch_size; n != -1 && (n < 1 || n > physical_.limits.threads))
      return fail(errc::invalid_argument, "blocks of " + std::to_string(n) + " threads", "cuda",
                  physical_.name + " takes 1 to " + std::to_string(physical_.limits.threads));
    return {};
  }
  result<void> prepare(stream_handle given) {
    stream_ = given;
    constexpr std::size_t in_flight = 64;  // reserved, so that a steady step allocates nothing
    pending_.reserve(in_flight);
    spare_.reserve(in_flight);
    if (given != nullptr) return {};
    const auto here = current();
    constexpr unsigned non_blocking = 1;
    if (const auto s = f()->create_stream(&stream_, non_blocking); s != status::success) return failed(s, "creating a stream");
    owns_stream_ = true;
    ++counters.objects;
    return {};
  }
};

}  // namespace isotope::cuda
