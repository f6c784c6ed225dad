#pragma once
/// Tells a processor what was measured of it, so that its kernels choose by it among variants with the same bits.
#include "calibration.hpp"

namespace isotope {

/// A device whose kernels choose by the rates of its threads.
template <class D>
concept HasRates = requires(const D& d) { d.set_rates({}); };

/// @param device  plans that are loaded later choose by its rates
/// @param c       of this device with all its threads, in the format of its programs; figures that nobody measured keep the defaults of the architecture
template <HasRates Device> void use_rates(const Device& device, const calibration& c) {
  const auto measured = [&](quantity q) { return c[q].from == provenance::measured ? c[q].value : 0; };
  const double n = device.threads();
  device.set_rates({.multiply = measured(quantity::product_large) / 2 / n,
                    .copy = measured(quantity::stream_small) / n,
                    .barrier = measured(quantity::barrier)});
}

}  // namespace isotope
