#pragma once
/// Switches with which an application examines a run. The library reads no environment variable and prints nothing: programs fill
/// this from flags and ISOTOPE_* variables (docs/FLAGS.md), hand it to `device<T>::open`, and write reports of plan/ and train/ themselves.
#include <cstdint>
#include <vector>

namespace isotope {

/// A failure that a device simulates, to test how programs handle it.
enum class injected_fault : std::uint8_t { none, device_lost, out_of_memory, hung };

/// A specialization constant of shaders: its id and its value.
struct shader_constant {
  std::uint32_t id = 0, value = 0;
};

struct diagnostics {
  bool validate = false;               // gpu: load VK_LAYER_KHRONOS_validation and count its messages
  bool names = false;                  // gpu: give every object a name for debuggers (always on with `validate`)
  bool force_upload = false;           // copy inputs also when they have not changed
  bool no_readback = false;            // do not read back loss and norm, to time launches alone: every report is NaN and marked skipped
  bool no_self_test = false;           // gpu: trust every kernel variant
  bool distrust_matrix_units = false;  // gpu: make the self-test of matrix units fail
  bool no_matrix_units = false;        // gpu: no cooperative matrices at all
  bool no_f16_matrices = false;        // gpu: no cooperative matrices for f16 operands; bf16 is not affected
  bool no_workgroup_matrices = false;  // gpu: no VK_NV_cooperative_matrix2
  std::uint32_t split_k = 0;           // gpu: into how many parts matmuls with few output tiles split K; 0: chosen by size
  // gpu: the next three are for matmuls of f16 weights and f32 activations, where matrix units need the activations rounded to f16
  float oscillation_threshold = 0.35f;  // activations stay f32 if the weight's oscillation (backend/oscillation.hpp) is above this
  bool no_auto_wide = false;            // round activations regardless of the weight's oscillation
  bool force_wide = false;              // never round activations
  std::int64_t chunk_bytes = 0;         // gpu: largest single allocation; 0: the device's own limit
  std::int32_t launch_size = -1;        // gpu: invocations per workgroup where a kernel allows any number; -1: the kernel's own choice
  std::vector<shader_constant> constants = {};  // gpu: additional constants of every pipeline, for kernels that were built to read them
  std::int32_t drop_barrier = -1;               // gpu: leave out the barrier of this index, to test that checks notice; -1: none
  injected_fault fault = injected_fault::none;  // gpu
  std::int64_t fault_after = 0;                 // submissions that still succeed before `fault`
};

}  // namespace isotope
