#pragma once
/// What an application may switch on or off to look into a run. The library reads no environment variable and prints nothing: programs fill
/// this from flags and ISOTOPE_* variables (docs/FLAGS.md), hand it to `device<T>::open`, and write reports of plan/ and train/ themselves.
#include <cstdint>
#include <vector>

namespace isotope {

/// A failure that a device pretends to have, to test how programs take it.
enum class injected_fault : std::uint8_t { none, device_lost, out_of_memory, hung };

/// A specialization constant of shaders: its number and its value.
struct shader_constant {
  std::uint32_t id = 0, value = 0;
};

struct diagnostics {
  bool validate = false;               // gpu: load VK_LAYER_KHRONOS_validation and count its messages
  bool names = false;                  // gpu: give every object a name for debuggers (always on with `validate`)
  bool force_upload = false;           // copy inputs also when they have not changed
  bool no_readback = false;            // leave loss and norm where they are, for timing launches alone: every step reports NaN, skipped
  bool no_self_test = false;           // gpu: trust every kernel variant
  bool distrust_matrix_units = false;  // gpu: let the self-test of matrix units fail
  bool no_matrix_units = false;        // gpu: no cooperative matrices at all
  bool no_f16_matrices = false;        // gpu: no cooperative matrices for f16 operands; bf16 is not affected
  bool no_workgroup_matrices = false;  // gpu: no VK_NV_cooperative_matrix2
  std::uint32_t split_k = 0;           // gpu: parts of K in gemms that fill the device badly; 0: chosen by size
  // gpu: gemms of f16 weights and f32 activations, which matrix units take rounded to f16
  float oscillation_threshold = 0.35f;          // weights that oscillate more (backend/oscillation.hpp) keep f32 activations
  bool no_auto_wide = false;                    // whatever the weights
  bool force_wide = false;                      // activations are never rounded
  std::int64_t chunk_bytes = 0;                 // gpu: largest single allocation; 0: the device's own limit
  std::int32_t launch_size = -1;                // gpu: invocations of workgroups whose kernel leaves it open; -1: what it chooses
  std::vector<shader_constant> constants = {};  // gpu: given to every pipeline beside its own, for kernels that were built to read them
  std::int32_t drop_barrier = -1;               // gpu: leave out barrier k, to see that checkers notice
  injected_fault fault = injected_fault::none;  // gpu
  std::int64_t fault_after = 0;                 // submissions that still succeed before `fault`
};

}  // namespace isotope
