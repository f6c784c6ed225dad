#pragma once
/// What all groups of NVIDIA GPUs share. Their operations on device memory are put on a stream, where a CUDA graph can capture them; those of `communicator` take
/// memory of the host and pass it through the device.
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "../../backend/cuda/context.hpp"
#include "../../backend/cuda/stream_communicator.hpp"
#include "../call.hpp"

namespace isotope {

/// The device of a rank, which outlives its communicator. `context` is the primary context of the device.
struct gpu_of_rank {
  std::shared_ptr<const cuda::driver> driver;
  cuda::context_handle context = nullptr;
  cuda::stream_handle stream = nullptr;
};

/// The ranks also have a group on the host, by which they meet and hear why the group ended. An abort of this one ends that one.
class gpu_communicator : public communicator, public cuda::stream_communicator {
 public:
  ~gpu_communicator() override {
    const cuda::current_context here(*device_.driver, device_.context);
    if (event_ != nullptr) f()->destroy_event(event_);
    if (staging_ != 0) f()->free(staging_);
  }

  int rank() const override { return host_->rank(); }
  int ranks() const override { return host_->ranks(); }
  cuda::stream_handle stream() const { return device_.stream; }

  /// y = the combination of every rank's x, where y may be x; on memory of the device, in the order of `s`. Returns as soon as it is on the stream.
  /// @error device_lost, peer_lost, and the cause if the group has ended; the same for the three below
  virtual result<void> all_reduce_on(cuda::stream_handle s, cuda::device_address x, cuda::device_address y, std::size_t elems, dtype type,
                                     reduction how) = 0;
  /// whole = part of rank 0, part of rank 1, ...; `part` may be its own place in `whole`.
  virtual result<void> all_gather_on(cuda::stream_handle s, cuda::device_address part, cuda::device_address whole,
                                     std::size_t bytes_of_part) = 0;
  /// part = piece rank() of the combination of every rank's `whole`; `part` may be its own place in `whole`.
  virtual result<void> reduce_scatter_on(cuda::stream_handle s, cuda::device_address whole, cuda::device_address part,
                                         std::size_t elems_of_part, dtype type, reduction how) = 0;
  virtual result<void> broadcast_on(cuda::stream_handle s, cuda::device_address x, std::size_t bytes, int root) = 0;
  /// What a plan exchanges.
  result<void> start(const cuda::library_collective& c, cuda::stream_handle s) override {
    using kind = cuda::library_collective::kind;
    const auto own = c.whole + std::uint64_t(c.count * size_of(c.type)) * std::uint64_t(rank());
    switch (c.what) {
      case kind::all_reduce: return all_reduce_on(s, c.whole, c.whole, std::size_t(c.count), c.type, reduction::sum);
      case kind::reduce_scatter: return reduce_scatter_on(s, c.whole, own, std::size_t(c.count), c.type, reduction::sum);
      case kind::all_gather: return all_gather_on(s, c.part == 0 ? own : c.part, c.whole, std::size_t(c.count * size_of(c.type)));
      case kind::none: break;
    }
    return {};
  }
  /// Waits until the device has passed what is on `s`. After an error the device no longer uses the memory of operations, unless it hangs for good.
  /// @error timeout, which ends the group; the cause if the group ends meanwhile
  result<void> wait(cuda::stream_handle s) {
    const cuda::current_context here(*device_.driver, device_.context);
    if (const auto e = f()->record_event(event_, s); e != cuda::status::success) return ends(failed(e, "recording an event"));
    const double begin = now();
    double look = begin;
    std::optional<double> heard;  // when the group on the host ended: a rank that leaves has passed the operation, and this one will, too
    for (int turn = 0;; ++turn) {
      const auto e = f()->query_event(event_);
      if (ended_.load()) return settled();
      if (e == cuda::status::success) return passed();
      if (e != cuda::status::not_ready) return ends(failed(e, "waiting for the other ranks"));
      if (now() - look > look_seconds) {
        look = now();
        if (auto r = asynchronous(); !r) return ends(r.error());
        auto r = host_->state();
        if (!r && !heard) heard = look;
        if (!r && look - *heard > leave_seconds) return ends(r.error());
        if (look - begin > timeout_)
          return ends(
              fail(errc::timeout,
                   "operations with " + std::to_string(ranks() - 1) + " other ranks did not end within " + comm::seconds_text(timeout_),
                   std::string(name_), "look for what holds another rank, or give a longer timeout"));
      }
      if (turn > 1000) std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }

  result<void> all_reduce(std::span<std::byte> x, dtype type, reduction how) override {
    if (auto r = fits(comm::operation::all_reduce, comm::check::numbers(comm::operation::all_reduce, x, type)); !r) return r;
    return through(x, x.size(), x, 0, [&](cuda::device_address d) {
      return all_reduce_on(device_.stream, d, d, x.size() / std::size_t(size_of(type)), type, how);
    });
  }
  result<void> all_gather(std::span<const std::byte> part, std::span<std::byte> whole) override {
    if (auto r = fits(comm::operation::all_gather, comm::check::parts(comm::operation::all_gather, part, whole, rank(), ranks())); !r)
      return r;
    const std::size_t at_whole = padded(part.size());
    return through(part, at_whole + whole.size(), whole, at_whole,
                   [&](cuda::device_address d) { return all_gather_on(device_.stream, d, d + at_whole, part.size()); });
  }
  result<void> reduce_scatter(std::span<std::byte> whole, std::span<std::byte> part, dtype type, reduction how) override {
    auto fit = comm::check::parts(comm::operation::reduce_scatter, part, whole, rank(), ranks());
    if (fit) fit = comm::check::numbers(comm::operation::reduce_scatter, part, type);
    if (fit) fit = comm::check::numbers(comm::operation::reduce_scatter, whole, type);
    if (auto r = fits(comm::operation::reduce_scatter, std::move(fit)); !r) return r;
    const std::size_t at_part = padded(whole.size());
    return through(whole, at_part + part.size(), part, at_part, [&](cuda::device_address d) {
      return reduce_scatter_on(device_.stream, d, d + at_part, part.size() / std::size_t(size_of(type)), type, how);
    });
  }
  result<void> broadcast(std::span<std::byte> x, int root) override {
    if (auto r = fits(comm::operation::broadcast, comm::check::root(root, ranks())); !r) return r;
    return through(x, x.size(), x, 0, [&](cuda::device_address d) { return broadcast_on(device_.stream, d, x.size(), root); });
  }
  /// Returns once every rank's stream has passed everything before.
  result<void> barrier() override {
    std::array<std::int32_t, 1> one{1};
    return all_reduce(std::as_writable_bytes(std::span(one)), dtype::i32, reduction::sum);
  }
  result<void> state() override {
    if (ended_.load()) return why();
    if (auto r = host_->state(); !r) return ends(r.error());
    if (auto r = asynchronous(); !r) return ends(r.error());
    return {};
  }
  /// Kernels that wait for other ranks end, on this rank's device at once, on others when their ranks hear of it, within a millisecond of a `wait`.
  void abort(failure cause) noexcept override {
    {
      const std::lock_guard lock(cause_mutex_);
      if (!cause_) cause_ = cause;
      ended_.store(true);
    }
    host_->abort(std::move(cause));
    stop();
  }

 protected:
  gpu_communicator(std::string_view label, const gpu_of_rank& device, std::unique_ptr<communicator> host, double timeout_seconds)
      : name_(label), device_(device), host_(std::move(host)), timeout_(timeout_seconds) {}

  /// What went wrong on the device since, without waiting for a call of another thread.
  virtual result<void> asynchronous() = 0;
  /// Whether operations that the device has passed were whole.
  virtual result<void> passed() { return {}; }
  /// Ends what runs on the device and waits for other ranks. From any thread.
  virtual void stop() noexcept = 0;

  const gpu_of_rank& device() const { return device_; }
  communicator& host() const { return *host_; }
  const cuda::driver& f() const { return *device_.driver; }
  bool ended() const { return ended_.load(); }
  failure failed(cuda::status s, std::string asked) const { return cuda::failed(*device_.driver, s, std::move(asked), std::string(name_)); }
  failure why() {
    const std::lock_guard lock(cause_mutex_);
    return cause_ ? *cause_ : fail(errc::poisoned, "the communicator has ended", std::string(name_), "join another group");
  }
  failure ends(failure cause) {
    if (!ended_.load()) abort(std::move(cause));
    return event_ == nullptr ? why() : settled();
  }
  result<void> on_own_thread(comm::operation o) const { return thread_.check(o); }
  /// Makes what `wait` uses. @error as the driver reports
  result<void> prepare() {
    constexpr unsigned no_timing = 2;
    if (const auto s = f()->create_event(&event_, no_timing); s != cuda::status::success) return failed(s, "creating an event");
    return {};
  }
  /// Whether a sum of 1 over all ranks gives their number. @error corrupt, and as all_reduce
  result<void> check_sum() {
    std::array<float, 1> one{1};
    if (auto r = all_reduce(std::as_writable_bytes(std::span(one)), dtype::f32, reduction::sum); !r) return r;
    if (one[0] == float(ranks())) return {};
    return fail(
        errc::corrupt,
        "rank " + std::to_string(rank()) + " of " + std::to_string(ranks()) + ": the sum of 1 over all ranks is " + std::to_string(one[0]),
        std::string(name_), "check the link between the GPUs, and that every rank has a GPU of its own");
  }

 private:
  static constexpr double look_seconds = 1e-3;  // how often a wait looks for what went wrong
  static constexpr double leave_seconds = 0.1;  // how long after the last rank the others may pass an operation
  static constexpr double settle_seconds = 10;  // how long aborted kernels may take to end
  std::string_view name_;
  gpu_of_rank device_;
  std::unique_ptr<communicator> host_;
  double timeout_;
  comm::own_thread thread_;
  std::mutex cause_mutex_;
  std::optional<failure> cause_;
  std::atomic<bool> ended_{false};
  cuda::event_handle event_ = nullptr;
  cuda::device_address staging_ = 0;
  std::size_t staging_bytes_ = 0;

  static std::size_t padded(std::size_t bytes) { return (bytes + 255) / 256 * 256; }
  /// The cause, once the device has passed what was on its stream, or after a while.
  failure settled() {
    for (const double begin = now(); now() - begin < settle_seconds;) {
      if (f()->query_event(event_) != cuda::status::not_ready) break;
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    return why();
  }
  static double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
  result<void> fits(comm::operation o, result<void> r) {
    if (auto here = thread_.check(o); !here) return here;
    if (ended_.load()) return why();
    if (!r) return ends(r.error());
    return {};
  }
  /// Copies `from` to the begin of the staging memory, runs `work` on its address, and copies `to.size()` bytes from `offset` back.
  template <class Work>
  result<void> through(std::span<const std::byte> from, std::size_t bytes, std::span<std::byte> to, std::size_t offset, const Work& work) {
    const cuda::current_context here(*device_.driver, device_.context);
    if (bytes > staging_bytes_ || staging_ == 0) {
      if (staging_ != 0) f()->free(staging_);
      staging_ = 0, staging_bytes_ = padded(bytes + 1);
      if (const auto s = f()->allocate(&staging_, staging_bytes_); s != cuda::status::success)
        return ends(failed(s, "allocating " + std::to_string(staging_bytes_) + " bytes for numbers of the host"));
    }
    if (!from.empty())
      if (const auto s = f()->copy_to_device(staging_, from.data(), from.size(), device_.stream); s != cuda::status::success)
        return ends(failed(s, "copying to the device"));
    if (auto r = work(staging_); !r) return r;
    if (auto r = wait(device_.stream); !r) return r;
    if (to.empty()) return {};
    if (const auto s = f()->copy_to_host(to.data(), staging_ + offset, to.size(), device_.stream); s != cuda::status::success)
      return ends(failed(s, "copying to the host"));
    return wait(device_.stream);
  }
};

}  // namespace isotope
