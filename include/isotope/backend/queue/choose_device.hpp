#pragma once
/// The choice of a device by name, the same for every backend with a driver.
#include <string>
#include <utility>
#include <vector>

#include "../../core/device.hpp"
#include "../../core/error.hpp"
#include "../../core/text_case.hpp"

namespace isotope {

/// What is said where a driver finds no device, or a device that cannot be used.
struct device_words {
  std::string backend;    // its name
  std::string none, fix;  // what is wrong if there is no device, and what to do
};

/// The failure of a device that lacks what its field `missing` names.
template <class D> failure lacks(const D& d, const std::string& backend) {
  return fail(errc::missing_feature, d.name + " lacks " + d.missing, backend,
              "update its driver, choose another device, or rebuild with -DBACKEND=cpu");
}

/// The index of the first usable device that matches `asked`, which is an index, a kind, a part of a name, or empty for any device. D has the members name,
/// kind and missing (the required features that the device lacks; empty: it is usable).
///
/// @error no_device: there is no device; unknown_device, with the names of all devices; missing_feature: the matching device is not usable
template <class D> result<std::size_t> choose_device(const std::vector<D>& all, const std::string& asked, const device_words& words) {
  std::string seen;
  for (std::size_t i = 0; i < all.size(); ++i) seen += (i == 0 ? "" : ", ") + std::to_string(i) + " " + all[i].name;
  if (all.empty()) return fail(errc::no_device, words.none, words.backend, words.fix);
  // Digits alone are an index, even if they are part of a name.
  const bool index = !asked.empty() && asked.find_first_not_of("0123456789") == asked.npos;
  const auto matches = [&](std::size_t i) {
    if (index) return asked == std::to_string(i);
    return asked.empty() || asked == name_of(all[i].kind) || contains_ignoring_case(all[i].name, asked);
  };
  const D* unfit = nullptr;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (matches(i)) {
      if (all[i].missing.empty()) return i;
      if (unfit == nullptr) unfit = &all[i];
    }
  if (unfit != nullptr) return lacks(*unfit, words.backend);
  return fail(errc::unknown_device, "no device '" + asked + "'", words.backend, "there are: " + seen);
}

}  // namespace isotope
