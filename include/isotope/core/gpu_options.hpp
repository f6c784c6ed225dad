#pragma once
/// What backends of GPUs have in common to be told. Programs fill this from their flags, whatever the backend, and options_for takes over what it has.
#include <cstdint>

#include "device.hpp"

namespace isotope {

struct gpu_diagnostics : diagnostics {
  bool validate = false;               // load a layer that checks every call of the driver, and count its messages
  bool names = false;                  // give every object a name for debuggers (always on with `validate`)
  bool no_self_test = false;           // trust every kernel variant
  bool distrust_matrix_units = false;  // let the self-test of matrix units fail
  bool no_matrix_units = false;        // no matrix units at all
  bool no_f16_matrices = false;        // no matrix units for f16 operands; bf16 is not affected
  bool no_workgroup_matrices = false;  // no matrices that a whole workgroup multiplies
  std::uint32_t split_k = 0;           // parts of K in gemms that fill the device badly; 0: chosen by size
  // Products of f16 weights and f32 activations, which matrix units take rounded to f16:
  float oscillation_threshold = 0.35f;  // weights that oscillate more (backend/oscillation.hpp) keep f32 activations
  bool no_auto_wide = false;            // whatever the weights
  bool force_wide = false;              // activations are never rounded
  std::int64_t chunk_bytes = 0;         // largest single allocation; 0: the device's own limit
  std::int32_t launch_size = -1;        // invocations of workgroups whose kernel leaves it open; -1: what it chooses
  std::int32_t drop_barrier = -1;       // leave out barrier k, to see that checkers notice
};
using gpu_options = basic_device_options<gpu_diagnostics>;

}  // namespace isotope
