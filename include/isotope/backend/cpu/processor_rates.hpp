#pragma once
/// What the threads of a device do in a second: kernels choose by it among variants with the same bits.
namespace isotope::cpu {

/// Rates of one thread while all work. Those that are 0 nobody has measured: kernels take defaults of the architecture.
struct processor_rates {
  double multiply = 0;  // multiply-adds of a large product in the format of the program
  double copy = 0;      // bytes that are read and written in caches
  double barrier = 0;   // seconds until all threads have begun a job and ended it
};

}  // namespace isotope::cpu
