#pragma once
/// What the threads of a device do in a second: kernels choose by it among variants with the same bits.
#include <string_view>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace isotope::cpu {

/// Rates of one thread while all work. Those that are 0 nobody has measured: kernels take defaults of the architecture.
struct processor_rates {
  double multiply = 0;  // multiply-adds of a large product in the format of the program
  double copy = 0;      // bytes that are read and written in caches
  double barrier = 0;   // seconds until all threads have begun a job and ended it
};

/// Whether CPUID names Intel as the processor's vendor.
inline bool made_by_intel() {
  static const bool answer = [] {
#if defined(__x86_64__)
    unsigned a = 0, vendor[3] = {};
    if (__get_cpuid(0, &a, &vendor[0], &vendor[2], &vendor[1]) != 0)
      return std::string_view(reinterpret_cast<const char*>(vendor), sizeof vendor) == "GenuineIntel";
#endif
    return false;
  }();
  return answer;
}

}  // namespace isotope::cpu
