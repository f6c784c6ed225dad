#pragma once
/// The options of a CUDA device.
#include <string>

#include "../../core/gpu_options.hpp"

namespace isotope::cuda {

/// Libraries of NVIDIA are opened when the device is. `no_matrix_units` turns off tensor cores; `drop_barrier` leaves out an edge of the graph.
struct diagnostics : gpu_diagnostics {
  std::string driver_library = {};  // file of the driver's library; empty: libcuda.so.1 where the loader finds it
  std::string library_folder = {};  // of cuBLASLt, e.g. in Python's wheels; empty: the loader finds it
  bool no_library = false;          // never call cuBLASLt
  bool large_kernels = false;       // small matmuls run as large ones do, so that tests of small sizes reach their kernels
  bool no_early_start = false;      // kernels start only when those that they wait for have ended
  bool no_joins = false;            // every step has launches of its own
  bool no_halves = false;           // layers of decoding have five launches each, not two
  bool no_whole_step = false;       // a step of decoding of few rows has two launches a layer, not one for all
  bool no_row_norms = false;        // normalisations of 17 to 64 rows have launches of their own
  bool no_encoder = false;          // a small encoder of few rows has a launch for every step
  bool no_together = false;         // clusters of a small encoder have a launch for each layer, not one for all
  bool no_direct = false;           // inputs and outputs of every run are copied
  bool exchanges_in_order = false;  // exchanges between ranks wait for all launches before them, and those after them wait
};
using options = basic_device_options<diagnostics>;

}  // namespace isotope::cuda
