#pragma once
/// What runs the plans of batches: a device of some backend, behind functions that know no template.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../core/device.hpp"
#include "../core/error.hpp"
#include "../plan/dynamic.hpp"
#include "call.hpp"

namespace isotope::conform {

/// The planner's view of a target.
struct target_facts {
  std::string_view backend, set;
  dtype program = dtype::f32;
  std::span<const kernel_info> kernels, all_kernels;
  std::int64_t chunk_bytes = 0, tensor_bytes = 0;
  bool gpu = false;
  std::int64_t (*chain)(std::int64_t K) = nullptr;
  std::string launch = "own";  // invocations of workgroups: own (the kernels choose), a number, or sweep

  conditions on(const numeric_policy& p) const { return {program, gpu, chain, p}; }
};

/// What ran a step of a plan: the kernel set, and why not a better one.
struct step_tier {
  std::string_view set, shader, reason;
  std::string_view op = {};                // whose kernel it is; empty: of no step
  std::int32_t launch = 0;                 // invocations of its workgroups; 0: the backend has none
  std::vector<std::int32_t> launch_sizes;  // those of a whole sweep
  std::uint64_t digest = 0;                // of the shader's words; 0: there are none
};

/// A plan in a device's memory.
class loaded_batch {
 public:
  virtual ~loaded_batch() = default;
  virtual std::span<std::byte> inputs() = 0;
  /// The inputs as the last run left them where the device reads them.
  virtual std::span<const std::byte> inputs_after() { return inputs(); }
  /// Fills everything that the device may write.
  virtual result<void> poison(std::byte with) = 0;
  virtual result<void> run(const step_scalars& x) = 0;
  /// The outputs of the last run.
  virtual std::span<const std::byte> outputs() = 0;
  /// Submissions to the device's queue so far; on a processor, walks over the plan.
  virtual std::int64_t submissions() const = 0;
  virtual std::vector<step_tier> tiers() const { return {}; }
};

class executor {
 public:
  virtual ~executor() = default;
  virtual target_facts facts() const = 0;
  virtual device_info device() const = 0;
  /// `perturbed`: on other numbers of threads, where a device has threads: 1, 2 and 3 in turn; after `sweep` on other sizes of workgroups, each in turn.
  virtual result<std::unique_ptr<loaded_batch>> load(dynamic_plan plan, bool perturbed) = 0;
  /// How often a batch is loaded perturbed.
  virtual int perturbations() const { return 1; }
  /// From here on batches also run with every other size of workgroups. @error invalid_argument where there are none
  virtual result<void> sweep() {
    return fail(errc::invalid_argument, "there are no workgroups whose size could be swept", std::string(facts().backend),
                "use another backend");
  }
};

}  // namespace isotope::conform
