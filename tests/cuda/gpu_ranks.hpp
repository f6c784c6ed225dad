#pragma once
/// A rank on each of several GPUs of this machine, each on a thread of its own, for tests and benchmarks of their communicators.
#include <isotope/comm/cuda/direct_communicator.hpp>
#include <isotope/comm/cuda/nccl_communicator.hpp>
#include <isotope/comm/thread_group.hpp>

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

namespace isotope::cuda_test {

/// The variables of the process that NCCL reads.
inline std::map<std::string, std::string> nccl_environment() {
  std::map<std::string, std::string> out;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const auto equals = text.find('=');
    if (text.starts_with("NCCL_") && equals != text.npos) out.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return out;
}

/// The primary context of one GPU and a stream, for the calling thread.
class gpu {
 public:
  static result<std::unique_ptr<gpu>> open(const std::shared_ptr<const cuda::driver>& d, int index) {
    std::unique_ptr<gpu> g(new gpu);
    g->at_.driver = d;
    auto s = (*d)->device_get(&g->device_, index);
    if (s == cuda::status::success) s = (*d)->retain_primary_context(&g->at_.context, g->device_);
    if (s != cuda::status::success) return cuda::failed(*d, s, "opening GPU " + std::to_string(index));
    (*d)->push_context(g->at_.context);
    if (s = (*d)->create_stream(&g->at_.stream, 1); s != cuda::status::success) return cuda::failed(*d, s, "creating a stream");
    return g;
  }
  gpu(const gpu&) = delete;
  gpu& operator=(const gpu&) = delete;
  ~gpu() {
    if (at_.stream != nullptr) f()->destroy_stream(at_.stream);
    cuda::context_handle ignored = nullptr;
    if (at_.context != nullptr) {
      f()->pop_context(&ignored);
      f()->release_primary_context(device_);
    }
  }
  const cuda::driver& f() const { return *at_.driver; }
  const gpu_of_rank& device() const { return at_; }
  cuda::stream_handle stream() const { return at_.stream; }
  void wait() const { f()->synchronize_stream(at_.stream); }

 private:
  gpu_of_rank at_;
  cuda::device_handle device_ = 0;
  gpu() = default;
};

/// Memory of the current device.
class device_memory {
 public:
  device_memory(const gpu& g, std::size_t bytes) : gpu_(g) { g.f()->allocate(&at, bytes == 0 ? 1 : bytes); }
  device_memory(const device_memory&) = delete;
  device_memory& operator=(const device_memory&) = delete;
  ~device_memory() { gpu_.f()->free(at); }
  void set(const std::vector<std::byte>& x, std::size_t offset = 0) const {
    gpu_.f()->copy_to_device(at + offset, x.data(), x.size(), gpu_.stream());
    gpu_.wait();
  }
  std::vector<std::byte> get(std::size_t bytes, std::size_t offset = 0) const {
    std::vector<std::byte> x(bytes);
    gpu_.f()->copy_to_host(x.data(), at + offset, bytes, gpu_.stream());
    gpu_.wait();
    return x;
  }
  cuda::device_address at = 0;

 private:
  const gpu& gpu_;
};

/// What several GPUs need to communicate; `open` says what is missing.
struct gpu_ranks {
  std::shared_ptr<const cuda::driver> driver;
  std::shared_ptr<const nccl::library> library;  // null: they communicate directly
  int gpus = 0;

  /// @error no_device: fewer than two GPUs; missing_feature: no NCCL, or no access to each other's memory
  static result<gpu_ranks> open(bool direct = false) {
    auto d = cuda::driver::open({});
    if (!d) return d.error();
    gpu_ranks g;
    g.driver = *std::move(d);
    (*g.driver)->device_count(&g.gpus);
    if (g.gpus < 2)
      return fail(errc::no_device, "this machine has " + std::to_string(g.gpus) + " GPU, and two are needed", "gpu_ranks",
                  "use another machine");
    if (direct) {
      int can = 0;
      if ((*g.driver)->can_access_peer != nullptr) (*g.driver)->can_access_peer(&can, 0, 1);
      if (can == 0) return fail(errc::missing_feature, "GPU 0 cannot reach the memory of GPU 1", "gpu_ranks", "use another machine");
      return g;
    }
    auto l = nccl::library::open({});
    if (!l) return l.error();
    g.library = *std::move(l);
    return g;
  }
  /// Runs body(communicator, gpu) for each rank on a thread of its own. What could not be opened goes to failed(line).
  template <class Body>
  void each(int ranks, const nccl_settings& settings, double timeout_seconds, const Body& body,
            const std::function<void(std::string)>& failed) const {
    on_threads(
        ranks,
        [&](const gpu& g, std::unique_ptr<communicator> host) {
          return nccl_communicator::join(settings, library, g.device(), std::move(host), timeout_seconds);
        },
        body, failed);
  }
  /// The same for GPUs that communicate directly.
  template <class Body>
  void each_directly(int ranks, double timeout_seconds, const Body& body, const std::function<void(std::string)>& failed) const {
    const auto places = std::make_shared<direct::places>(ranks);
    on_threads(
        ranks,
        [&](const gpu& g, std::unique_ptr<communicator> host) {
          return direct_communicator::join(places, g.device(), std::move(host), timeout_seconds);
        },
        body, failed);
  }

 private:
  template <class Join, class Body>
  void on_threads(int ranks, const Join& join, const Body& body, const std::function<void(std::string)>& failed) const {
    thread_group hosts(ranks, {.timeout_seconds = 60});
    std::vector<std::thread> threads;
    for (int r = 0; r < ranks; ++r)
      threads.emplace_back([&, r] {
        auto host = hosts.join(r);
        auto g = gpu::open(driver, r);
        if (!g) return failed(g.error().line());
        auto c = join(**g, *std::move(host));
        if (!c) return failed(c.error().line());
        body(**c, **g);
      });
    for (auto& t : threads) t.join();
  }
};

}  // namespace isotope::cuda_test
