#pragma once
/// Physical devices as Vulkan describes them, their order of preference, and the choice of one by name.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "../../core/device.hpp"
#include "../../core/error.hpp"
#include "../queue/choose_device.hpp"
#include "functions.hpp"
#include "limits.hpp"

namespace isotope::vulkan {

/// The modes of f32 arithmetic that kernels could request (VK_KHR_shader_float_controls). No kernel requests one; docs/NUMERICS.md says why.
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
  std::int64_t allocation_limit = 0;  // most bytes of one allocation
  std::int64_t buffer_limit = 0;      // most bytes of one buffer
  bool sparse = false, subgroup_control = false, memory_budget = false;
  float_modes modes;
  bool has_matrix = false, has_matrix2 = false, has_bfloat16 = false;
  std::uint8_t cache_uuid[VK_UUID_SIZE] = {};
  std::string missing;  // the required features that the device lacks; empty: it is usable
};

/// Inserts a device so that `all` stays sorted: discrete before integrated before processor, and in order of insertion within a kind.
inline void add_by_kind(std::vector<physical_device>& all, physical_device p) {
  const auto place = std::upper_bound(all.begin(), all.end(), p, [](const auto& a, const auto& b) { return int(a.kind) > int(b.kind); });
  all.insert(place, std::move(p));
}

inline failure lacks(const physical_device& p) { return isotope::lacks(p, "vulkan"); }

/// The index of the first usable device that matches `asked`. @error as choose_device
inline result<std::size_t> choose(const std::vector<physical_device>& all, const std::string& asked) {
  return choose_device(all, asked,
                       {"vulkan", "the Vulkan loader found no device",
                        "install the driver of the GPU, or apt-get install mesa-vulkan-drivers for the processor"});
}

}  // namespace isotope::vulkan
