#pragma once
/// What kernels need of a device's subgroups, and the size that they are recorded for.
#include <algorithm>
#include <cstdint>
#include <string>

#include "functions.hpp"
#include "limits.hpp"

namespace isotope::vulkan {

/// The device's own words, from VkPhysicalDeviceVulkan11Properties and VkPhysicalDeviceVulkan13Properties.
struct subgroup_properties {
  std::uint32_t usual = 0;                            // the size without a wish
  std::uint32_t least = 0, most = 0;                  // sizes that a pipeline may require
  std::uint32_t in_workgroup = 0;                     // the most subgroups of a workgroup whose pipeline requires a size
  VkShaderStageFlags stages = 0, require_stages = 0;  // that have subgroup operations; that may require a size
  VkSubgroupFeatureFlags operations = 0;
};

/// Kernels take sizes from 4 (counters of ids in shared memory) to 64 (rows.hpp: workgroups are multiples of 64).
inline constexpr std::uint32_t least_subgroup_of_kernels = 4, most_subgroup_of_kernels = 64;
/// Invocations that every device must take in one workgroup: kernels of fixed size have 256 of them, or 8 subgroups (matmul_skinny.comp).
constexpr std::uint32_t least_workgroup(std::uint32_t subgroup) { return std::max(256u, 8 * subgroup); }

/// Takes the subgroups of a device into its limits, whose `invocations` are set. Returns what it lacks, by name, or nothing.
inline std::string take_subgroups(const subgroup_properties& p, device_limits& to) {
  std::string missing;
  const auto lacks = [&](const std::string& what) { missing += (missing.empty() ? "" : ", ") + what; };
  const auto need = [&](VkSubgroupFeatureFlags bit, const char* name) {
    if ((p.operations & bit) == 0) lacks(std::string("subgroup ") + name + " operations");
  };
  need(VK_SUBGROUP_FEATURE_BASIC_BIT, "basic");
  need(VK_SUBGROUP_FEATURE_VOTE_BIT, "vote");
  need(VK_SUBGROUP_FEATURE_ARITHMETIC_BIT, "arithmetic");
  need(VK_SUBGROUP_FEATURE_BALLOT_BIT, "ballot");
  if ((p.stages & VK_SHADER_STAGE_COMPUTE_BIT) == 0) lacks("subgroup operations in compute shaders");
  const bool choice = p.least != p.most;
  if (choice && (p.require_stages & VK_SHADER_STAGE_COMPUTE_BIT) == 0) lacks("required subgroup sizes in compute shaders");
  const std::uint32_t least = std::max(p.least, least_subgroup_of_kernels), most = std::min(p.most, most_subgroup_of_kernels);
  if (least > most) {
    const auto text = [](std::uint32_t a, std::uint32_t b) { return std::to_string(a) + (a == b ? "" : " to " + std::to_string(b)); };
    lacks("subgroups of " + text(least_subgroup_of_kernels, most_subgroup_of_kernels) + " invocations (it has " + text(p.least, p.most) +
          ")");
    return missing;
  }
  to.subgroup = std::clamp(p.usual, least, most);
  to.least_subgroup = p.least;
  to.most_subgroup = p.most;
  if (choice) to.workgroup_subgroups = p.in_workgroup;
  const std::uint32_t wanted = least_workgroup(to.subgroup);
  const std::uint64_t room = choice ? std::uint64_t(to.subgroup) * to.workgroup_subgroups : wanted;
  if (const auto given = std::min<std::uint64_t>(to.invocations, room); given < wanted)
    lacks("workgroups of " + std::to_string(wanted) + " invocations in subgroups of " + std::to_string(to.subgroup) + " (it has " +
          std::to_string(given) + ")");
  return missing;
}

}  // namespace isotope::vulkan
