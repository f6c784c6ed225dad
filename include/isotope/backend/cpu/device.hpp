#pragma once
/// The host processor as a device: its threads, and the programs loaded onto it.
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "../../core/device.hpp"
#include "processor.hpp"
#include "session.hpp"
#include "thread_pool.hpp"

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {  // calls kernels: objects of another -march have their own

/// Devices of a target: `auto d = iso::device<iso::selected>::open();`
template <Target T> class device {
 public:
  using session = cpu::session<T>;

  /// @error missing_feature, unknown_device for a name that is not `cpu`, invalid_argument for a number of threads out of range or a fault to inject
  static result<device> open(const device_options& o = {}) {
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
    if constexpr (config::has_bf16_tiles) static_cast<void>(tiles_refused());  // asks for them before threads start
    device d;
    d.pool_ = std::make_shared<cpu::thread_pool>(o.threads);
    d.diagnose_ = o.diagnose;
    return d;
  }

  /// Loads a static program, with an evaluation program of the same parameters if one is named.
  template <class Program> result<session> load() const { return session::load(Program::view(), {}, pool_, diagnose_); }
  template <class Program, class Evaluation> result<session> load() const {
    return session::load(Program::view(), Evaluation::view(), pool_, diagnose_);
  }
  /// Loads plans made at run time; the session keeps them.
  result<session> load(dynamic_plan plan, dynamic_plan evaluation = {}) const {
    return session::load(std::move(plan), std::move(evaluation), pool_, diagnose_);
  }

  /// Zeroed memory of this device. @error out_of_memory
  template <class E> result<buffer<E>> allocate(std::int64_t length) const { return buffer<E>::allocate(length, pool_); }

  int threads() const { return pool_->size(); }
  device_info info() const {
    device_info r{.name = "cpu", .backend = "cpu", .kind = device_kind::cpu, .index = 0, .units = pool_->size()};
    if constexpr (config::has_bf16_tiles)
      r.facts.push_back({"bf16 products", tiles_refused().empty() ? "matrix unit (AMX)" : "vectors: " + std::string(tiles_refused())});
    return r;
  }

 private:
  std::shared_ptr<cpu::thread_pool> pool_;
  diagnostics diagnose_;
};

}  // namespace arch
}  // namespace isotope::cpu
