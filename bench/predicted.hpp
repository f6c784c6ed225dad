#pragma once
/// `--calibration FOLDER` of a benchmark: the time of one run that the figures in the folder predict, beside the measured one.
#include "../examples/support/calibration_key.hpp"

#include <isotope/calibrate/calibration_file.hpp>
#include <isotope/calibrate/estimate.hpp>

#include <cstdio>
#include <string>

namespace bench {

/// Prints predicted and measured time of a run that is waited for. Prints why there is no prediction, where there is none.
inline void compare_with_prediction(const std::string& folder, const isotope::device_info& device, const isotope::plan_view& plan,
                                    const isotope::run_facts& facts, double seconds) {
  const auto read = isotope::read_calibrations(isotope::calibration_path(folder, device), support::calibration_key(device));
  const isotope::calibration* const c = read.find(isotope::name_of(isotope::selected::precision::type));
  if (c == nullptr) {
    std::printf("no prediction: %s\n", read.why.empty() ? "isotope-info calibrate has not measured this device" : read.why.c_str());
    return;
  }
  const isotope::time_estimate e = isotope::estimate(plan, *c, facts);
  std::printf("predicted %.1f us alone (", 1e6 * e.seconds());
  for (std::size_t k = 0; k < e.parts.size(); ++k)
    std::printf("%s%s %.1f", k == 0 ? "" : ", ", std::string(name_of(isotope::bound(k))).c_str(), 1e6 * e.parts[k]);
  std::printf("), measured / predicted %.2f\n", seconds / e.seconds());
}

}  // namespace bench
