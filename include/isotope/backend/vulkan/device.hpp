#pragma once
/// A Vulkan device for programs of one target.
#include <memory>
#include <utility>
#include <vector>

#include "../session/loads_plans.hpp"
#include "queue.hpp"
#include "self_test.hpp"

namespace isotope::vulkan {

/// Devices of a target: `auto d = iso::device<iso::selected>::open();`
template <Target T> class device : public loads_plans<device<T>, queue<T>> {
 public:
  using options = vulkan::options;

  /// @error no_device (no loader, driver or device), unknown_device with the devices seen, missing_feature with the features' names
  static result<device> open(const options& o = {}) { return with(context::open(o), o); }
  /// Uses objects of the application; see native_handles. @error no_device, missing_feature
  static result<device> adopt(const native_handles& h, const options& o = {}) { return with(context::adopt(h, o), o); }
  /// A device of another target on a context that is open already, so that programs of several precisions share one set of pipelines.
  static device over(std::shared_ptr<vulkan::context> c, std::shared_ptr<vulkan::pipelines> p) {
    device d;
    d.context_ = std::move(c);
    d.pipelines_ = std::move(p);
    return d;
  }

  result<vulkan::queue<T>> open_queue() const { return vulkan::queue<T>::create(context_, pipelines_); }
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
  void claim_thread() const { context_->owner().claim(); }
  /// @error missing_feature where the driver does not say
  result<device_memory> memory() const { return memory_left(*context_); }
  const std::shared_ptr<vulkan::context>& shared() const { return context_; }
  const std::shared_ptr<vulkan::pipelines>& shared_pipelines() const { return pipelines_; }

 private:
  std::shared_ptr<vulkan::context> context_;
  std::shared_ptr<vulkan::pipelines> pipelines_;

  static result<device> with(result<std::shared_ptr<vulkan::context>> c, const options& o) {
    if (!c) return c.error();
    device d;
    d.context_ = std::move(*c);
    d.pipelines_ = std::make_shared<vulkan::pipelines>(d.context_);
    if constexpr (std::is_same_v<typename T::precision, precision::bf16> && T::kernel_set::rank == kernels::native::rank) {
      const bool tried = !o.diagnose.no_self_test && d.limits().matrix(dtype::bf16) != nullptr;
      using units = matrix_self_test<kernel<op::matmul, precision::bf16, kernels::native>>;
      if (tried)
        if (auto why = units(d.context_, *d.pipelines_).run(dtype::bf16); !why.empty()) d.context_->distrust(std::move(why));
    }
    return d;
  }
};

}  // namespace isotope::vulkan
