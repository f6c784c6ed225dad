#pragma once
/// One rank's end of a group of NVIDIA GPUs that read and write each other's memory, as NVLink and PCIe allow between GPUs of one process.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu_communicator.hpp"

#include <isotope/kernels/cuda/portable/exchange.h>
#include <isotope/fatbins/exchange.hpp>

namespace isotope {

namespace direct {

/// What ranks know of each other. The ranks are threads of one process, which share this object.
class places {
 public:
  struct place {
    cuda::device_handle device = -1;
    cuda::context_handle context = nullptr;  // null: the rank has not come
    cuda::device_address box = 0;            // gpu::exchange_box
    cuda::gpu::exchange_control* control = nullptr;
  };
  explicit places(int ranks) : all_(std::size_t(std::max(ranks, 0))) {}

  void set(int rank, const place& p) {
    const std::lock_guard lock(mutex_);
    all_[std::size_t(rank)] = p;
  }
  place of(int rank) const {
    const std::lock_guard lock(mutex_);
    return all_[std::size_t(rank)];
  }
  /// Ends the exchanges of every rank that is there. From any thread.
  void stop() const {
    const std::lock_guard lock(mutex_);
    for (const place& p : all_)
      if (p.control != nullptr) std::atomic_ref(p.control->stop).store(1);
  }

 private:
  mutable std::mutex mutex_;
  std::vector<place> all_;
};

}  // namespace direct

/// Each exchange is one launch on every GPU (kernels/cuda/portable/exchange.cu), without a library. Numbers are combined in the order of the ranks, so their bits are
/// those of threads and TCP.
///
/// Ranks whose exchanges differ wait for each other until an operation of the host, which names the rank, or a watchdog ends the group. After a failure the device of
/// another rank may still read this one's memory for as long as its running exchange takes. Destroy graphs that hold exchanges before the communicator.
class direct_communicator final : public gpu_communicator {
 public:
  static constexpr std::string_view name = "direct";

  /// Called by all ranks of `host` at the same time, with the same `all`; returns when a sum of 1 over all ranks has given their number.
  /// @param blocks  of the largest exchanges; 0: 32, with which NVLink is busy
  /// @error missing_feature: a GPU that cannot reach another one's memory, more than 16 ranks, a rank that is another process, or no device code for the GPU;
  ///        invalid_argument: a missing driver, context or group, or two ranks with one GPU; corrupt: the sum is wrong; device_lost, timeout, peer_lost
  static result<std::unique_ptr<direct_communicator>> join(std::shared_ptr<direct::places> all, const gpu_of_rank& device,
                                                           std::unique_ptr<communicator> host, double timeout_seconds = 600,
                                                           int blocks = 0) {
    if (all == nullptr || device.driver == nullptr || device.context == nullptr || host == nullptr)
      return fail(errc::invalid_argument, "a communicator without places, a driver, a context or a group on the host", std::string(name),
                  "give all four");
    std::unique_ptr<direct_communicator> c(new direct_communicator(std::move(all), device, std::move(host), timeout_seconds, blocks));
    if (auto r = c->connect(); !r) {
      c->abort(r.error());
      return r.error();
    }
    return c;
  }
  /// Waits for what is on the stream, unless the group has ended. Then other ranks may still tell this one something, so that memory stays until the context ends.
  ~direct_communicator() override {
    const cuda::current_context here(f(), device().context);
    if (!ended()) f()->synchronize_stream(stream());
    all_->set(rank(), {});
    if (library_ != nullptr && !ended()) f()->unload_library(library_);
    if (box_ != 0 && !ended()) f()->free(box_);
    if (control_ != nullptr && !ended()) f()->free_host(control_);
  }

  result<void> all_reduce_on(cuda::stream_handle s, cuda::device_address x, cuda::device_address y, std::size_t elems, dtype type,
                             reduction how) override {
    return put(s, comm::operation::all_reduce, {x, y, elems, type, how, cuda::gpu::exchange_all_reduce});
  }
  result<void> all_gather_on(cuda::stream_handle s, cuda::device_address part, cuda::device_address whole,
                             std::size_t bytes_of_part) override {
    return put(s, comm::operation::all_gather, {part, whole, bytes_of_part, dtype::u8, reduction::sum, cuda::gpu::exchange_all_gather});
  }
  result<void> reduce_scatter_on(cuda::stream_handle s, cuda::device_address whole, cuda::device_address part, std::size_t elems_of_part,
                                 dtype type, reduction how) override {
    return put(s, comm::operation::reduce_scatter, {whole, part, elems_of_part, type, how, cuda::gpu::exchange_reduce_scatter});
  }
  result<void> broadcast_on(cuda::stream_handle s, cuda::device_address x, std::size_t bytes, int root) override {
    if (auto r = comm::check::root(root, ranks()); !r) return r;
    return put(s, comm::operation::broadcast, {x, x, bytes, dtype::u8, reduction::sum, cuda::gpu::exchange_broadcast, root});
  }
  bool exchanges_by_kernels() const override { return true; }

 private:
  struct exchange {
    cuda::device_address from = 0, to = 0;
    std::size_t count = 0;
    dtype type = dtype::u8;
    reduction how = reduction::sum;
    cuda::gpu::exchange_kind kind = cuda::gpu::exchange_broadcast;
    int root = 0;
  };
  static constexpr std::uint32_t threads = 512;
  static constexpr std::size_t bytes_of_block = std::size_t(threads) * 16;  // one load of each thread
  std::shared_ptr<direct::places> all_;
  int blocks_;
  cuda::library_handle library_ = nullptr;
  std::map<dtype, cuda::function_handle> functions_;  // u8: copies
  cuda::device_address box_ = 0;
  cuda::gpu::exchange_control* control_ = nullptr;
  cuda::gpu::exchange_operands operands_{};  // what all exchanges share

  direct_communicator(std::shared_ptr<direct::places> all, const gpu_of_rank& device, std::unique_ptr<communicator> host,
                      double timeout_seconds, int blocks)
      : gpu_communicator(name, device, std::move(host), timeout_seconds), all_(std::move(all)), blocks_(blocks) {}

  result<void> asynchronous() override {
    if (control_ == nullptr) return {};
    const auto other = std::atomic_ref(control_->differs).load();
    if (other == 0) return {};
    return fail(errc::invalid_argument,
                "rank " + std::to_string(other - 1) + " calls another operation than rank " + std::to_string(rank()) + ", or other sizes",
                std::string(name), "let all ranks call the same operations in the same order with the same sizes");
  }
  /// An exchange that was stopped passes, too.
  result<void> passed() override {
    if (std::atomic_ref(control_->stop).load() == 0) return {};
    if (auto r = host().state(); !r) return ends(r.error());
    return ends(fail(errc::poisoned, "the exchange was stopped", std::string(name), "join another group"));
  }
  void stop() noexcept override { all_->stop(); }

  static std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
    a = (a ^ b) * 0x9e37'79b9'7f4a'7c15u;
    return a ^ (a >> 29);
  }
  result<void> put(cuda::stream_handle s, comm::operation o, const exchange& e) {
    if (auto here = on_own_thread(o); !here) return here;
    if (ended()) return why();
    if (e.count == 0) return {};
    const cuda::current_context here(f(), device().context);
    auto a = operands_;
    a.from = e.from, a.to = e.to;
    a.count = std::int64_t(e.count);
    a.kind = e.kind, a.maximum = e.how == reduction::max ? 1 : 0, a.root = e.root;
    a.what =
        mixed(mixed(mixed(mixed(1, std::uint64_t(e.kind)), std::uint64_t(e.type) * 2 + std::uint64_t(a.maximum)), std::uint64_t(e.root)),
              e.count);
    const std::size_t moved =
        e.count * std::size_t(size_of(e.type)) / (e.kind == cuda::gpu::exchange_all_reduce ? std::size_t(ranks()) : 1);
    const std::size_t useful = (moved + bytes_of_block - 1) / bytes_of_block;
    cuda::launch_config how{.grid_x = unsigned(std::clamp<std::size_t>(useful, 1, std::size_t(blocks_))), .block_x = threads};
    how.stream = s;
    void* parameters[] = {&a};
    if (const auto r = f()->launch_kernel(&how, functions_.at(e.type), parameters, nullptr); r != cuda::status::success)
      return ends(failed(r, "starting " + std::string(comm::name_of(o))));
    return {};
  }

  static failure lacks(std::string what, std::string fix = "use NCCL between these GPUs") {
    return fail(errc::missing_feature, std::move(what), std::string(name), std::move(fix));
  }
  result<void> load() {
    const auto& code = cuda::fatbins::exchange;
    if (!code.there())
      return lacks("the code " + std::string(code.name) + " is not in this build",
                   "configure with -DCUDA_ARCHS that has " + std::string(code.missing));
    if (const auto s = f()->load_library(&library_, code.bytes.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
        s != cuda::status::success)
      return failed(s, "loading the code " + std::string(code.name) + " (built for " + std::string(code.architectures) + ")");
    constexpr std::pair<dtype, const char*> all[] = {
        {dtype::f32, "exchange_f32"}, {dtype::bf16, "exchange_bf16"}, {dtype::f16, "exchange_f16"},  {dtype::f64, "exchange_f64"},
        {dtype::i32, "exchange_i32"}, {dtype::i64, "exchange_i64"},   {dtype::u8, "exchange_copies"}};
    for (const auto& [type, function] : all) {
      cuda::kernel_handle kernel = nullptr;
      auto s = f()->library_kernel(&kernel, library_, function);
      if (s == cuda::status::success) s = f()->kernel_function(&functions_[type], kernel);
      if (s != cuda::status::success) return failed(s, "loading the kernel " + std::string(function));
    }
    return {};
  }
  /// Makes the memory by which other ranks reach this one.
  result<direct::places::place> open_place() {
    direct::places::place own;
    if (const auto s = f()->context_device(&own.device); s != cuda::status::success) return failed(s, "asking for the device");
    constexpr int usual_blocks = 32;
    if (blocks_ <= 0) blocks_ = usual_blocks;
    constexpr unsigned portable_and_mapped = 3;
    void* control = nullptr;
    auto s = f()->allocate_host(&control, sizeof(cuda::gpu::exchange_control), portable_and_mapped);
    if (s == cuda::status::success) control_ = new (control) cuda::gpu::exchange_control{};
    if (s == cuda::status::success) s = f()->allocate(&box_, sizeof(cuda::gpu::exchange_box));
    if (s == cuda::status::success) s = f()->fill_words(box_, 0, sizeof(cuda::gpu::exchange_box) / 4, stream());
    if (s == cuda::status::success) s = f()->synchronize_stream(stream());
    if (s != cuda::status::success) return failed(s, "allocating memory that other ranks reach");
    own.context = device().context;
    own.box = box_, own.control = control_;
    return own;
  }
  /// Lets this rank's kernels use the memory of rank p.
  result<void> reach(const direct::places::place& own, const direct::places::place& other, int p) {
    const std::string ours = "GPU " + std::to_string(own.device) + " of rank " + std::to_string(rank());
    if (other.context == nullptr)
      return lacks("rank " + std::to_string(p) + " is not in this process, whose GPUs alone rank " + std::to_string(rank()) + " can reach",
                   "use NCCL between processes");
    const std::string theirs = "GPU " + std::to_string(other.device) + " of rank " + std::to_string(p);
    if (other.device == own.device)
      return fail(errc::invalid_argument,
                  "ranks " + std::to_string(rank()) + " and " + std::to_string(p) + " have the same GPU, " + std::to_string(own.device),
                  std::string(name), "give every rank a GPU of its own");
    int can = 0;
    if (const auto s = f()->can_access_peer(&can, own.device, other.device); s != cuda::status::success)
      return failed(s, "asking whether " + ours + " reaches the memory of " + theirs);
    if (can == 0) return lacks(ours + " cannot reach the memory of " + theirs);
    if (const auto s = f()->enable_peer_access(other.context, 0);
        s != cuda::status::success && s != cuda::status::peer_access_already_enabled)
      return failed(s, "letting " + ours + " reach the memory of " + theirs);
    return {};
  }
  result<void> connect() {
    const cuda::current_context here(f(), device().context);
    if (!here)
      return fail(errc::device_lost, "the context of the device cannot be made current", std::string(name),
                  "give a context that was not destroyed");
    if (ranks() > cuda::gpu::most_exchange_ranks)
      return lacks(std::to_string(ranks()) + " ranks, and GPUs reach each other in groups of up to " +
                       std::to_string(cuda::gpu::most_exchange_ranks),
                   "use NCCL");
    if (f()->can_access_peer == nullptr || f()->enable_peer_access == nullptr)
      return lacks("the driver cannot let GPUs reach each other's memory", "update the driver");
    if (auto r = prepare(); !r) return r;
    if (auto r = load(); !r) return r;
    auto own = open_place();
    if (!own) return own.error();
    all_->set(rank(), *own);
    if (auto r = host().barrier(); !r) return r;
    std::vector<direct::places::place> seen;
    for (int p = 0; p < ranks(); ++p) seen.push_back(all_->of(p));
    if (auto r = host().barrier(); !r) return r;  // a rank that fails from here on takes its place away
    for (int p = 0; p < ranks(); ++p) {
      if (p != rank())
        if (auto r = reach(*own, seen[std::size_t(p)], p); !r) return r;
      operands_.boxes[p] = seen[std::size_t(p)].box;
    }
    operands_.control = reinterpret_cast<std::uint64_t>(control_);
    operands_.rank = rank(), operands_.ranks = ranks();
    if (auto r = host().barrier(); !r) return r;
    return check_sum();
  }
};

}  // namespace isotope
