#pragma once
/// The host processor as a device: its threads, and the programs loaded onto it.
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../../core/device.hpp"
#include "../session/loads_plans.hpp"
#include "processor.hpp"
#include "queue.hpp"
#include "system_memory.hpp"
#include "thread_pool.hpp"

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {  // calls kernels: objects of another -march have their own

/// Devices of a target: `auto d = iso::device<iso::selected>::open();`
template <Target T> class device : public loads_plans<device<T>, queue<T>> {
 public:
  using options = device_options;

  /// @error missing_feature, unknown_device for a name that is not `cpu`, invalid_argument for a number of threads out of range or a fault to inject
  static result<device> open(const options& o = {}) {
    if (!o.name.empty() && o.name != "cpu" && o.name != "0")
      return fail(errc::unknown_device, "no device '" + std::string(o.name) + "'", "cpu", "there is one: 0 cpu");
    if (o.threads < 0 || o.threads > cpu::thread_pool::max_threads)
      return fail(errc::invalid_argument, std::to_string(o.threads) + " threads", "cpu",
                  "0 (all processors) to " + std::to_string(cpu::thread_pool::max_threads));
    if (o.diagnose.fault != injected_fault::none)
      return fail(errc::invalid_argument, "the processor has no faults to inject", "cpu", "choose a gpu backend");
    if (const auto feature = features_here().missing(); !feature.empty())
      return fail(errc::missing_feature,
                  "this processor has no " + std::string(feature) + ", which the program was compiled for (" ISOTOPE_CPU_ARCH ")", "cpu",
                  "compile for it: -DCPU_ARCH=native there, or x86-64-v3");
    if constexpr (config::has_bf16_tiles) static_cast<void>(tiles_refused());  // the permission must be requested before threads start
    device d;
    d.pool_ = std::make_shared<cpu::thread_pool>(o.threads);
    d.diagnose_ = o.diagnose;
    if (o.autotune == tuning::measure || (o.autotune == tuning::cached && !o.cache.empty()))
      d.choices_ = open_choices<tuning>(o.autotune, o.cache.empty() ? o.cache : o.cache + ".cpu");
    return d;
  }

  const std::shared_ptr<cpu::thread_pool>& shared() const { return pool_; }
  result<cpu::queue<T>> open_queue() const { return cpu::queue<T>(pool_, diagnose_, groups_, choices_); }
  /// The groups of the plans that are loaded after this.
  void join(const rank_groups& groups) { groups_ = groups; }
  /// Plans that are loaded after this choose by these rates among variants with the same bits (calibrate/use_rates.hpp).
  void set_rates(const processor_rates& r) const { pool_->rates = r; }
  static constexpr bool on_host = true;
  /// Options under which the same plans must give the same bits: other numbers of threads.
  std::vector<options> variations(const options& o) const {
    std::vector<options> all;
    for (const int n : {1, 2, 3})
      if (n != threads()) all.push_back(o), all.back().threads = n;
    return all;
  }
  /// Empty: the processor has no workgroups.
  std::vector<options> launch_variations(const options&) const { return {}; }
  std::int32_t launch_size() const { return -1; }
  int threads() const { return pool_->size(); }
  /// The calling thread becomes the only one that may use the device.
  void claim_thread() const { pool_->owner().claim(); }
  /// @error missing_feature where the system does not say
  result<device_memory> memory() const { return cpu::memory_of_system(); }
  device_info info() const {
    device_info r{.name = "cpu", .backend = "cpu", .kind = device_kind::cpu, .index = 0, .units = pool_->size()};
    if constexpr (config::has_bf16_tiles)
      r.facts.push_back({"bf16 products", tiles_refused().empty() ? "matrix unit (AMX)" : "vectors: " + std::string(tiles_refused())});
    return r;
  }

 private:
  std::shared_ptr<cpu::thread_pool> pool_;
  diagnostics diagnose_;
  rank_groups groups_;
  std::shared_ptr<plan_choices> choices_;  // null: by estimate
};

}  // namespace arch
}  // namespace isotope::cpu
