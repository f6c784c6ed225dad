#pragma once
/// A CUDA device for programs of one target.
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "../session/loads_plans.hpp"
#include "queue.hpp"

#include <isotope/fatbins/build.hpp>

namespace isotope::cuda {

/// Devices of a target: `auto d = iso::device<iso::selected>::open();`
template <Target T> class device : public loads_plans<device<T>, queue<T>> {
 public:
  using options = cuda::options;

  /// @error no_device (no driver or device), unknown_device with the devices seen, missing_feature: an old driver, or no code for the device in this build
  static result<device> open(const options& o = {}) {
    std::thread loading;
    if (blas_products::allowed(o)) loading = std::thread(blas_library::preload, o.diagnose.library_folder);
    auto c = context::open(o, fatbins::needs);
    if (loading.joinable()) loading.join();
    return with(std::move(c));
  }
  /// Uses objects of the application; see native_handles. @error no_device, missing_feature, invalid_argument
  static result<device> adopt(const native_handles& h, const options& o = {}) { return with(context::adopt(h, o, fatbins::needs)); }
  /// A device of another target on a context that is open already, so that programs of several precisions share loaded code.
  static device over(std::shared_ptr<cuda::context> c, std::shared_ptr<loaded_functions> functions) {
    device d;
    d.context_ = std::move(c);
    d.functions_ = std::move(functions);
    return d;
  }

  result<cuda::queue<T>> open_queue() const { return cuda::queue<T>::create(context_, functions_, groups_); }
  /// The groups of the plans that are loaded after this; their communicators derive from stream_communicator, too.
  void join(const rank_groups& groups) { groups_ = groups; }
  device_info info() const { return context_->info(); }
  const device_limits& limits() const { return context_->physical().limits; }
  native_handles handles() const { return context_->handles(); }
  static constexpr bool on_host = false;
  std::vector<options> variations(const options&) const { return {}; }
  std::vector<options> launch_variations(const options& o) const {
    std::vector<options> all;
    for (const std::int32_t n : swept_sizes(limits())) all.push_back(o), all.back().diagnose.launch_size = n;
    return all;
  }
  std::int32_t launch_size() const { return limits().switches.launch_size; }
  /// Always 1: host threads do not matter here, but programs print their number for every backend.
  int threads() const { return 1; }
  /// The calling thread becomes the only one that may use the device.
  void claim_thread() const { context_->library()->owner().claim(); }
  /// @error device_lost, as the driver reports
  result<device_memory> memory() const { return context_->memory_left(); }
  const std::shared_ptr<cuda::context>& shared() const { return context_; }
  const std::shared_ptr<loaded_functions>& shared_functions() const { return functions_; }

 private:
  std::shared_ptr<cuda::context> context_;
  std::shared_ptr<loaded_functions> functions_;
  rank_groups groups_;

  static result<device> with(result<std::shared_ptr<cuda::context>> c) {
    if (!c) return c.error();
    device d;
    d.functions_ = std::make_shared<loaded_functions>(*c);
    d.context_ = *std::move(c);
    return d;
  }
};

}  // namespace isotope::cuda
