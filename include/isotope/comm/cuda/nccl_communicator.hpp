#pragma once
/// One rank's end of a group of NVIDIA GPUs that communicate by NCCL.
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "../nccl_settings.hpp"
#include "gpu_communicator.hpp"
#include "nccl_library.hpp"

namespace isotope {

/// NCCL's order of sums is its own: the same in every run with the same settings, devices and sizes, and for two ranks the order of the ranks.
///
/// The ranks' group on the host also passes NCCL's id between them. Destroy graphs that hold operations of a communicator before it.
class nccl_communicator final : public gpu_communicator {
 public:
  static constexpr std::string_view name = "nccl";

  /// Called by all ranks of `host` at the same time; returns when a sum of 1 over all ranks has given their number. It waits within NCCL for ranks that are
  /// there already, without a limit on time: a program's watchdog covers it.
  /// @error invalid_argument: a missing driver, context or group; corrupt: the sum is wrong, with the rank; device_lost, timeout, peer_lost
  static result<std::unique_ptr<nccl_communicator>> join(const nccl_settings&, std::shared_ptr<const nccl::library> library,
                                                         const gpu_of_rank& device, std::unique_ptr<communicator> host,
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
    const bool whole = !ended() && asynchronous().ok();
    const cuda::current_context here(f(), device().context);
    if (whole && handle_.load() != nullptr) f()->synchronize_stream(stream());
    if (const nccl::handle h = handle_.exchange(nullptr); h != nullptr) { whole ? nccl()->destroy(h) : nccl()->abort(h); }
  }

  result<void> all_reduce_on(cuda::stream_handle s, cuda::device_address x, cuda::device_address y, std::size_t elems, dtype type,
                             reduction how) override {
    return put(comm::operation::all_reduce,
               [&](nccl::handle h) { return nccl()->all_reduce(at(x), at(y), elems, nccl::type_of(type), nccl::operation_of(how), h, s); });
  }
  result<void> all_gather_on(cuda::stream_handle s, cuda::device_address part, cuda::device_address whole,
                             std::size_t bytes_of_part) override {
    return put(comm::operation::all_gather,
               [&](nccl::handle h) { return nccl()->all_gather(at(part), at(whole), bytes_of_part, nccl::data_type::u8, h, s); });
  }
  result<void> reduce_scatter_on(cuda::stream_handle s, cuda::device_address whole, cuda::device_address part, std::size_t elems_of_part,
                                 dtype type, reduction how) override {
    return put(comm::operation::reduce_scatter, [&](nccl::handle h) {
      return nccl()->reduce_scatter(at(whole), at(part), elems_of_part, nccl::type_of(type), nccl::operation_of(how), h, s);
    });
  }
  result<void> broadcast_on(cuda::stream_handle s, cuda::device_address x, std::size_t bytes, int root) override {
    if (auto r = comm::check::root(root, ranks()); !r) return r;
    return put(comm::operation::broadcast,
               [&](nccl::handle h) { return nccl()->broadcast(at(x), at(x), bytes, nccl::data_type::u8, root, h, s); });
  }
  /// What `work` puts on streams starts as one launch.
  template <class Work> result<void> together(const Work& work) {
    nccl()->begin_group();
    result<void> r = work();
    if (const auto s = nccl()->end_group(); r && s != nccl::status::success)
      r = library_->failed(s, "a group of operations", handle_.load());
    return r;
  }

 private:
  std::shared_ptr<const nccl::library> library_;
  std::atomic<nccl::handle> handle_{nullptr};
  std::timed_mutex calling_;  // held while NCCL is called with the handle

  nccl_communicator(std::shared_ptr<const nccl::library> library, const gpu_of_rank& device, std::unique_ptr<communicator> host,
                    double timeout_seconds)
      : gpu_communicator(name, device, std::move(host), timeout_seconds), library_(std::move(library)) {}

  const nccl::table* nccl() const { return library_->operator->(); }
  static void* at(cuda::device_address a) { return reinterpret_cast<void*>(a); }
  result<void> asynchronous() override {
    const std::unique_lock lock(calling_, std::try_to_lock);
    const nccl::handle h = handle_.load();
    if (!lock || h == nullptr) return {};
    auto async = nccl::status::success;
    if (const auto s = nccl()->async_error(h, &async); s != nccl::status::success) return library_->failed(s, "asking for errors", nullptr);
    if (async == nccl::status::success || async == nccl::status::in_progress) return {};
    return library_->failed(async, "an operation between ranks", h);
  }
  void stop() noexcept override {
    // A call in progress ends on its own, but for the first ones, which wait for the other ranks within NCCL.
    std::unique_lock lock(calling_, std::defer_lock);
    (void)lock.try_lock_for(std::chrono::milliseconds(200));
    const nccl::handle h = handle_.exchange(nullptr);
    if (h == nullptr) return;
    const cuda::current_context here(f(), device().context);
    nccl()->abort(h);
  }
  /// Calls NCCL, unless the group has ended. An error ends it.
  template <class Call> result<void> put(comm::operation o, const Call& call) {
    if (auto here = on_own_thread(o); !here) return here;
    const cuda::current_context here(f(), device().context);
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
  result<void> connect() {
    const cuda::current_context here(f(), device().context);
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
    if (auto r = host().broadcast(std::as_writable_bytes(std::span(hex)), 0); !r) return r;
    auto read = nccl::from_hex({hex.data(), hex.size()});
    if (!read) return read.error();
    if (auto r = prepare(); !r) return r;
    if (auto r = host().barrier(); !r) return r;
    nccl::handle h = nullptr;
    if (const auto s = nccl()->create(&h, ranks(), *read, rank()); s != nccl::status::success)
      return library_->failed(s, "joining the group", nullptr);
    handle_.store(h);
    return check_sum();
  }
};

}  // namespace isotope
