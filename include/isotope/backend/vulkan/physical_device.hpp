#pragma once
/// Physical devices as Vulkan describes them: their order, and the choice of one.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "../../core/device.hpp"
#include "../../core/error.hpp"
#include "../../core/text_case.hpp"
#include "functions.hpp"
#include "limits.hpp"

namespace isotope::vulkan {

/// What kernels could ask of arithmetic in f32 by VK_KHR_shader_float_controls. None asks for any of it; docs/NUMERICS.md says why.
struct float_modes {
  bool keeps_subnormals = false, flushes_subnormals = false, keeps_signed_zeros_infinities_and_nan = false;
  bool rounds_to_nearest_even = false, rounds_toward_zero = false;
};

/// A physical device as Vulkan describes it.
struct physical_device {
  VkPhysicalDevice handle = nullptr;
  std::string name, driver;
  VkPhysicalDeviceProperties properties{};
  VkPhysicalDeviceMemoryProperties memory{};
  device_kind kind = device_kind::cpu;
  device_limits limits;
  std::uint32_t family = 0;  // queue family with compute
  std::uint32_t timestamp_bits = 0;
  std::int64_t allocation_limit = 0;  // bytes of one allocation
  std::int64_t buffer_limit = 0;      // bytes of one buffer
  bool sparse = false, subgroup_control = false, memory_budget = false;
  float_modes modes;
  bool has_matrix = false, has_matrix2 = false, has_bfloat16 = false;
  std::uint8_t cache_uuid[VK_UUID_SIZE] = {};
  std::string missing;  // required features that it lacks, by name; empty: usable
};

/// Keeps `all` in order, the best first: discrete, integrated, processor; in the order of arrival among equals.
inline void add_by_kind(std::vector<physical_device>& all, physical_device p) {
  const auto place = std::upper_bound(all.begin(), all.end(), p, [](const auto& a, const auto& b) { return int(a.kind) > int(b.kind); });
  all.insert(place, std::move(p));
}

inline failure lacks(const physical_device& p) {
  return fail(errc::missing_feature, p.name + " lacks " + p.missing, "vulkan",
              "update its driver, choose another device, or rebuild with -DBACKEND=cpu");
}

/// The index of the first usable device that `asked` names: its index, its kind or a part of its name; empty: the first usable one.
///
/// @error no_device: there are none; unknown_device with those there are; missing_feature: what was asked for is there and not usable
inline result<std::size_t> choose(const std::vector<physical_device>& all, const std::string& asked) {
  std::string seen;
  for (std::size_t i = 0; i < all.size(); ++i) seen += (i == 0 ? "" : ", ") + std::to_string(i) + " " + all[i].name;
  if (all.empty())
    return fail(errc::no_device, "the Vulkan loader found no device", "vulkan",
                "install the driver of the GPU, or apt-get install mesa-vulkan-drivers for the processor");
  const bool index = !asked.empty() && asked.find_first_not_of("0123456789") == asked.npos;  // digits alone, whatever names hold
  const auto matches = [&](std::size_t i) {
    if (index) return asked == std::to_string(i);
    return asked.empty() || asked == name_of(all[i].kind) || contains_ignoring_case(all[i].name, asked);
  };
  const physical_device* unfit = nullptr;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (matches(i)) {
      if (all[i].missing.empty()) return i;
      if (unfit == nullptr) unfit = &all[i];
    }
  if (unfit != nullptr) return lacks(*unfit);
  return fail(errc::unknown_device, "no device '" + asked + "'", "vulkan", "there are: " + seen);
}

}  // namespace isotope::vulkan
