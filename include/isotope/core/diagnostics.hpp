#pragma once
/// Switches with which an application examines a run, on every backend. The library reads no environment variable and prints nothing: programs fill
/// this from flags and ISOTOPE_* variables (docs/FLAGS.md), hand it to `device<T>::open`, and write reports of plan/ and train/ themselves.
#include <cstdint>
#include <string>

namespace isotope {

/// A failure that a device simulates, to test how programs handle it.
enum class injected_fault : std::uint8_t { none, device_lost, out_of_memory, hung };

struct diagnostics {
  bool force_upload = false;  // copy inputs also when they have not changed
  bool no_readback = false;   // do not read back loss and norm, to time launches alone: every report is NaN and marked skipped
  injected_fault fault = injected_fault::none;  // refused by devices that cannot fail
  std::int64_t fault_after = 0;                 // submissions that still succeed before `fault`
  // Kernels that have a variant whose name begins so take it where it fits (plan/choose_kernel.hpp); empty: the fastest by estimate.
  std::string variant = {};
};

}  // namespace isotope
