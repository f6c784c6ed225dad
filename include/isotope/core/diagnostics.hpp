#pragma once
/// What an application may switch on or off to look into a run. The library reads no environment variable: programs fill this from flags and
/// ISOTOPE_* variables (core/diagnostics_names.hpp lists the names) and hand it to `device<T>::open`.
#include <cstdint>

namespace isotope {

/// A failure that a device pretends to have, to test how programs take it.
enum class injected_fault : std::uint8_t { none, device_lost, out_of_memory, hung };

struct diagnostics {
  bool validate = false;               // vulkan: load VK_LAYER_KHRONOS_validation and count its messages
  bool names = false;                  // give every device object a name for debuggers (always on with `validate`)
  bool timestamps = false;             // measure each launch; launches no longer overlap
  bool nan_trace = false;              // after each launch, look for the first that wrote NaN or infinity; slow
  bool force_upload = false;           // upload inputs also when they have not changed
  bool no_readback = false;            // leave loss and norm on the device: for timing launches alone
  bool red_zones = false;              // vulkan: keep and check a margin around every value; slow
  bool no_self_test = false;           // vulkan: trust every kernel variant
  bool no_matrix_units = false;        // vulkan: no cooperative matrices at all
  bool no_workgroup_matrices = false;  // vulkan: no VK_NV_cooperative_matrix2
  std::int64_t chunk_bytes = 0;        // vulkan: largest single allocation; 0: the device's own limit
  std::int32_t drop_barrier = -1;      // vulkan: leave out barrier k, to see that checkers notice
  injected_fault fault = injected_fault::none;
  std::int64_t fault_after = 0;  // submissions that still succeed before `fault`
};

}  // namespace isotope
