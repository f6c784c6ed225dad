#pragma once
/// The limits of a CUDA device that kernels may depend on when they are recorded.
#include <cstdint>
#include <string>

namespace isotope::cuda {

/// Switches that change which kernels run. Programs set them from flags and ISOTOPE_* variables.
struct kernel_switches {
  bool no_matrix_units = false;    // never use tensor cores
  bool no_generated_code = false;  // never generate PTX: fused bodies are interpreted
  bool large_kernels = false;      // never use kernels that only small matmuls have
  std::uint32_t split_k = 0;       // into how many parts matmuls split K; 0: chosen by size
  std::int32_t launch_size = -1;   // threads per block where a kernel allows any number; -1: the kernel's own choice
  std::string variant = {};        // of kernels that have one whose name begins so; empty: the fastest by estimate
};

struct device_limits {
  int compute = 80;                      // compute capability: 10 * major + minor
  std::int32_t multiprocessors = 108;    // streaming multiprocessors
  std::int32_t threads = 1024;           // most threads of a block
  std::int64_t shared_bytes = 48 << 10;  // most shared memory of a block, with opt-in
  std::int64_t shared_per_multiprocessor = 100 << 10;
  std::int64_t l2_bytes = 40 << 20;
  bool blas = false;  // cuBLASLt is there and may be used
  kernel_switches switches;

  /// Whether the device has the Hopper instructions of code for sm_90a: wgmma and the tensor memory accelerator.
  bool hopper() const { return compute == 90 && !switches.no_matrix_units; }
  bool tensor_cores() const { return compute >= 80 && !switches.no_matrix_units; }
};

}  // namespace isotope::cuda
