#pragma once
/// What the figures of a device depend on, for the programs that write and read them.
#include "machine.hpp"

#include <isotope/build_info.hpp>
#include <isotope/calibrate/calibration_file.hpp>
#include <isotope/selected.hpp>

#include <string>

namespace support {

/// The key of this device's calibration. Kernel sets differ in speed, so they are part of it; a commit is not, so that figures outlive it.
inline std::string calibration_key(const isotope::device_info& d) {
  const isotope::build& b = isotope::build_info<isotope::selected>;
  return isotope::calibration_key(
      d, this_machine().processor,
      "measured by version " + std::string(isotope::measuring_version) + ", " + std::string(b.kernels) + " kernels");
}

}  // namespace support
