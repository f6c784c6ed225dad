#pragma once
/// One rank's end of a group of NVIDIA GPUs. Its operations on device memory are put on a stream, where a CUDA graph can capture them; those of `communicator`
/// take memory of the host and pass it through the device.
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
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
#include "../nccl_settings.hpp"
#include "nccl_library.hpp"

namespace isotope {

/// The device of a rank, which outlives its communicator. `context` is the primary context of the device.
struct nccl_device {
  std::shared_ptr<const cuda::driver> driver;
  cuda::context_handle context = nullptr;
  cuda::stream_handle stream = nullptr;
};

/// NCCL's order of sums is its own: the same in every run with the same settings, devices and sizes, and for two ranks the order of the ranks.
///
/// The ranks also have a group on the host, by which they meet, exchange NCCL's id, and hear why the group ended. An abort of this one ends that one.
/// Destroy graphs that hold operations of a communicator before it.
class nccl_communicator final : public communicator, public cuda::stream_communicator {
 public:
  static constexpr std::string_view name = "nccl";

  /// Called by all ranks of `host` at the same time; returns when a sum of 1 over all ranks has given their number. It waits within NCCL for ranks that are
  /// there already, without a limit on time: a program's watchdog covers it.
  /// @error invalid_argument: a missing driver, context or group; corrupt: the sum is wrong, with the rank; device_lost, timeout, peer_lost
  static result<std::unique_ptr<nccl_communicator>> join(const nccl_settings&, std::shared_ptr<const nccl::library> library,
                                                         const nccl_device& device, std::unique_ptr<communicator> host,
                                                         double timeout_seconds = 600) {
    if (library == nullptr || device.driver == nullptr || device.context == nullptr || host == nullptr)
      return fail(errc::invalid_argument, "a communicator without a library, a driver, a context or a group on the host", std::string(name),
                  "give all four");
    std::unique_ptr<nccl_communicator> c(new nccl_communicator(std::move(library), device, std::move(host), timeout_seconds));
    if (auto r = c->connect(); !r) {
      c->abort(r.error());
      return r.error();
    }
    return c;
  }
  /// Waits for what is on the stream, unless the group has ended.
  ~nccl_communicator() override {
    const bool whole = !ended_.load() && asynchronous().ok();
    const cuda::current_context here(*device_.driver, device_.context);
    if (whole && handle_.load() != nullptr) f()->synchronize_stream(device_.stream);
    if (const nccl::handle h = handle_.exchange(nullptr); h != nullptr) { whole ? nccl()->destroy(h) : nccl()->abort(h); }
    if (event_ != nullptr) f()->destroy_event(event_);
    if (staging_ != 0) f()->free(staging_);
  }

  int rank() const override { return host_->rank(); }
  int ranks() const override { return host_->ranks(); }
  cuda::stream_handle stream() const { return device_.stream; }

  /// y = the combination of every rank's x, where y may be x; on memory of the device, in the order of `s`. Returns as soon as it is on the stream.
  /// @error device_lost, peer_lost, and the cause if the group has ended; the same for the three below
  result<void> all_reduce_on(cuda::stream_handle s, cuda::device_address x, cuda::device_address y, std::size_t elems, dtype type,
                             reduction how) {
    return put(comm::operation::all_reduce,
               [&](nccl::handle h) { return nccl()->all_reduce(at(x), at(y), elems, nccl::type_of(type), nccl::operation_of(how), h, s); });
  }
  /// whole = part of rank 0, part of rank 1, ...; `part` may be its own place in `whole`.
  result<void> all_gather_on(cuda::stream_handle s, cuda::device_address part, cuda::device_address whole, std::size_t bytes_of_part) {
    return put(comm::operation::all_gather,
               [&](nccl::handle h) { return nccl()->all_gather(at(part), at(whole), bytes_of_part, nccl::data_type::u8, h, s); });
  }
  /// part = piece rank() of the combination of every rank's `whole`; `part` may be its own place in `whole`.
  result<void> reduce_scatter_on(cuda::stream_handle s, cuda::device_address whole, cuda::device_address part, std::size_t elems_of_part,
                                 dtype type, reduction how) {
    return put(comm::operation::reduce_scatter, [&](nccl::handle h) {
      return nccl()->reduce_scatter(at(whole), at(part), elems_of_part, nccl::type_of(type), nccl::operation_of(how), h, s);
    });
  }
  result<void> broadcast_on(cuda::stream_handle s, cuda::device_address x, std::size_t bytes, int root) {
    if (auto r = comm::check::root(root, ranks()); !r) return r;
    return put(comm::operation::broadcast,
               [&](nccl::handle h) { return nccl()->broadcast(at(x), at(x), bytes, nccl::data_type::u8, root, h, s); });
  }
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
  /// What `work` puts on streams starts as one launch.
  template <class Work> result<void> together(const Work& work) {
    nccl()->begin_group();
    result<void> r = work();
    if (const auto s = nccl()->end_group(); r && s != nccl::status::success)
      r = library_->failed(s, "a group of operations", handle_.load());
    return r;
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
      if (e == cuda::status::success) return {};
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
                   std::string(name), "look for what holds another rank, or give a longer timeout"));
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
    // A call in progress ends on its own, but for the first ones, which wait for the other ranks within NCCL.
    std::unique_lock lock(calling_, std::defer_lock);
    (void)lock.try_lock_for(std::chrono::milliseconds(200));
    const nccl::handle h = handle_.exchange(nullptr);
    if (h == nullptr) return;
    const cuda::current_context here(*device_.driver, device_.context);
    nccl()->abort(h);
  }

 private:
  static constexpr double look_seconds = 1e-3;  // how often a wait looks for what went wrong
  static constexpr double leave_seconds = 0.1;  // how long after the last rank the others may pass an operation
  static constexpr double settle_seconds = 10;  // how long aborted kernels may take to end
  std::shared_ptr<const nccl::library> library_;
  nccl_device device_;
  std::unique_ptr<communicator> host_;
  double timeout_;
  comm::own_thread thread_;
  std::atomic<nccl::handle> handle_{nullptr};
  std::timed_mutex calling_;  // held while NCCL is called with the handle
  std::mutex cause_mutex_;
  std::optional<failure> cause_;
  std::atomic<bool> ended_{false};
  cuda::event_handle event_ = nullptr;
  cuda::device_address staging_ = 0;
  std::size_t staging_bytes_ = 0;

  nccl_communicator(std::shared_ptr<const nccl::library> library, const nccl_device& device, std::unique_ptr<communicator> host,
                    double timeout_seconds)
      : library_(std::move(library)), device_(device), host_(std::move(host)), timeout_(timeout_seconds) {}

  const cuda::driver& f() const { return *device_.driver; }
  const nccl::table* nccl() const { return library_->operator->(); }
  static void* at(cuda::device_address a) { return reinterpret_cast<void*>(a); }
  static std::size_t padded(std::size_t bytes) { return (bytes + 255) / 256 * 256; }
  failure failed(cuda::status s, std::string asked) const { return cuda::failed(*device_.driver, s, std::move(asked), std::string(name)); }
  failure why() {
    const std::lock_guard lock(cause_mutex_);
    return cause_ ? *cause_ : fail(errc::poisoned, "the communicator has ended", std::string(name), "join another group");
  }
  failure ends(failure cause) {
    if (!ended_.load()) abort(std::move(cause));
    return event_ == nullptr ? why() : settled();
  }
  /// What went wrong on the device since, without waiting for a call of another thread.
  result<void> asynchronous() {
    const std::unique_lock lock(calling_, std::try_to_lock);
    const nccl::handle h = handle_.load();
    if (!lock || h == nullptr) return {};
    auto async = nccl::status::success;
    if (const auto s = nccl()->async_error(h, &async); s != nccl::status::success) return library_->failed(s, "asking for errors", nullptr);
    if (async == nccl::status::success || async == nccl::status::in_progress) return {};
    return library_->failed(async, "an operation between ranks", h);
  }
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
  /// Calls NCCL, unless the group has ended. An error ends it.
  template <class Call> result<void> put(comm::operation o, const Call& call) {
    if (auto here = thread_.check(o); !here) return here;
    const cuda::current_context here(*device_.driver, device_.context);
    std::optional<failure> wrong;
    {
      const std::lock_guard lock(calling_);
      const nccl::handle h = handle_.load();
      if (h == nullptr) return why();
      if (const auto s = call(h); s != nccl::status::success) wrong = library_->failed(s, std::string(comm::name_of(o)), h);
    }
    if (wrong) return ends(*std::move(wrong));
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
  result<void> connect() {
    const cuda::current_context here(*device_.driver, device_.context);
    if (!here)
      return fail(errc::device_lost, "the context of the device cannot be made current", std::string(name),
                  "give a context that was not destroyed");
    std::array<char, 256> hex{};
    std::optional<failure> wrong;
    nccl::unique_id id;
    if (rank() == 0) {
      if (const auto s = nccl()->make_id(&id); s != nccl::status::success) wrong = library_->failed(s, "making an id", nullptr);
      else std::memcpy(hex.data(), nccl::to_hex(id).data(), hex.size());
    }
    if (wrong) return *wrong;
    if (auto r = host_->broadcast(std::as_writable_bytes(std::span(hex)), 0); !r) return r;
    auto read = nccl::from_hex({hex.data(), hex.size()});
    if (!read) return read.error();
    constexpr unsigned no_timing = 2;
    if (const auto s = f()->create_event(&event_, no_timing); s != cuda::status::success) return failed(s, "creating an event");
    if (auto r = host_->barrier(); !r) return r;
    nccl::handle h = nullptr;
    if (const auto s = nccl()->create(&h, ranks(), *read, rank()); s != nccl::status::success)
      return library_->failed(s, "joining the group", nullptr);
    handle_.store(h);
    std::array<float, 1> one{1};
    if (auto r = all_reduce(std::as_writable_bytes(std::span(one)), dtype::f32, reduction::sum); !r) return r;
    if (one[0] == float(ranks())) return {};
    return fail(
        errc::corrupt,
        "rank " + std::to_string(rank()) + " of " + std::to_string(ranks()) + ": the sum of 1 over all ranks is " + std::to_string(one[0]),
        std::string(name), "check the link between the GPUs, and that every rank has a GPU of its own");
  }
};

}  // namespace isotope
