#pragma once
/// Runs the plans of batches on a device of some backend, behind functions without templates.
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

/// A target as the planner sees it.
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

/// Describes what ran a step of a plan: the kernel set, and why not a better one.
struct step_tier {
  std::string_view set, shader, reason;
  std::string_view op = {};                // the op of its kernel; empty: no step
  std::int32_t launch = 0;                 // invocations of its workgroups; 0: the backend has none
  std::vector<std::int32_t> launch_sizes;  // those of a whole sweep
  std::uint64_t digest = 0;                // of the shader's words; 0: there are none
};

/// A plan loaded into a device's memory.
class loaded_batch {
 public:
  virtual ~loaded_batch() = default;
  virtual std::span<std::byte> inputs() = 0;
  /// Returns the inputs as the last run left them where the device reads them.
  virtual std::span<const std::byte> inputs_after() { return inputs(); }
  /// Fills all memory that the device may write.
  virtual result<void> poison(std::byte with) = 0;
  virtual result<void> run(const step_scalars& x) = 0;
  /// Returns the outputs of the last run.
  virtual std::span<const std::byte> outputs() = 0;
  /// Returns the submissions to the device's queue so far; on a processor, the runs of the plan.
  virtual std::int64_t submissions() const = 0;
  virtual std::vector<step_tier> tiers() const { return {}; }
};

class executor {
 public:
  virtual ~executor() = default;
  virtual target_facts facts() const = 0;
  virtual device_info device() const = 0;
  /// `perturbed`: with other numbers of threads, where a device has threads (1, 2 and 3 in turn); after `sweep`, with other sizes of workgroups, each
  /// in turn.
  virtual result<std::unique_ptr<loaded_batch>> load(dynamic_plan plan, bool perturbed) = 0;
  /// Returns how often a batch is loaded perturbed.
  virtual int perturbations() const { return 1; }
  /// Makes all further batches run with every other size of workgroups, too. @error invalid_argument if there are none
  virtual result<void> sweep() {
    return fail(errc::invalid_argument, "there are no workgroups whose size could be swept", std::string(facts().backend),
                "use another backend");
  }
};

}  // namespace isotope::conform
