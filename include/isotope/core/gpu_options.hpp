#pragma once
/// Options that all backends of GPUs have. Programs fill these from their flags for any backend, and options_for copies what the chosen backend has.
#include <cstdint>

#include "device.hpp"

namespace isotope {

struct gpu_diagnostics : diagnostics {
  bool validate = false;               // load a layer that checks every call of the driver, and count its messages
  bool names = false;                  // give every object a name for debuggers (always on with `validate`)
  bool no_self_test = false;           // trust every kernel variant
  bool distrust_matrix_units = false;  // make the self-test of matrix units fail
  bool no_matrix_units = false;        // do not use matrix units at all
  bool no_f16_matrices = false;        // do not use matrix units for f16 operands; bf16 is not affected
  bool no_workgroup_matrices = false;  // do not use matrices that a whole workgroup multiplies
  std::uint32_t split_k = 0;           // into how many parts matmuls with few output tiles split K; 0: chosen by size
  // The next three are for matmuls of f16 weights and f32 activations, where matrix units need the activations rounded to f16.
  float oscillation_threshold = 0.35f;  // activations stay f32 if the weight's oscillation (backend/oscillation.hpp) is above this
  bool no_auto_wide = false;            // round activations regardless of the weight's oscillation
  bool force_wide = false;              // never round activations
  std::int64_t chunk_bytes = 0;         // largest single allocation; 0: the device's own limit
  std::int32_t launch_size = -1;        // invocations per workgroup where a kernel allows any number; -1: the kernel's own choice
  std::int32_t drop_barrier = -1;       // leave out the barrier of this index, to test that checks notice; -1: none
};
using gpu_options = basic_device_options<gpu_diagnostics>;

}  // namespace isotope
