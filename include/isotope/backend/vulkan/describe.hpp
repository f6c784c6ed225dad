#pragma once
/// A physical device in words.
#include <string>
#include <string_view>
#include <utility>

#include "instance.hpp"

namespace isotope::vulkan {

namespace device_query {
inline std::string version(std::uint32_t v) {
  return std::to_string(VK_API_VERSION_MAJOR(v)) + "." + std::to_string(VK_API_VERSION_MINOR(v)) + "." +
         std::to_string(VK_API_VERSION_PATCH(v));
}
inline std::string mebibytes(std::int64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

/// "bf16 16x16x16, f16 16x8x16": M x N x K of the matrices with f32 sums.
inline std::string matrices_of(const device_limits& f) {
  std::string r;
  for (const auto& m : f.matrices)
    r += (r.empty() ? "" : ", ") + std::string(name_of(m.type)) + " " + std::to_string(m.m) + "x" + std::to_string(m.n) + "x" +
         std::to_string(m.k);
  return r;
}
/// "can keep subnormal numbers, round to nearest even; kernels ask for none".
inline std::string modes_of(const float_modes& m) {
  std::string r;
  for (const auto& [there, what] :
       {std::pair(m.keeps_subnormals, "keep subnormal numbers"), std::pair(m.flushes_subnormals, "flush them to zero"),
        std::pair(m.keeps_signed_zeros_infinities_and_nan, "keep signed zeros, infinities and NaN"),
        std::pair(m.rounds_to_nearest_even, "round to nearest even"), std::pair(m.rounds_toward_zero, "round toward zero")})
    if (there) r += (r.empty() ? "can " : ", ") + std::string(what);
  return (r.empty() ? "none can be set" : r) + "; kernels ask for none";
}
inline std::string heaps(const VkPhysicalDeviceMemoryProperties& m) {
  std::string r;
  for (std::uint32_t i = 0; i < m.memoryHeapCount; ++i)
    r += (i == 0 ? "" : ", ") + mebibytes(std::int64_t(m.memoryHeaps[i].size)) +
         ((m.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0 ? " on the device" : "");
  return r;
}
}  // namespace device_query

inline device_info describe(const physical_device& p, int index) {
  device_info d{.name = p.name, .backend = "vulkan", .kind = p.kind, .index = index, .units = int(p.limits.multiprocessors)};
  d.driver = p.driver;
  if (!p.missing.empty()) d.problem = "lacks " + p.missing + ": update its driver";
  const auto add = [&](std::string name, std::string value) { d.facts.push_back({std::move(name), std::move(value)}); };
  const device_limits& f = p.limits;
  add("Vulkan", device_query::version(p.properties.apiVersion));
  add("vendor, device", std::to_string(p.properties.vendorID) + ", " + std::to_string(p.properties.deviceID));
  add("memory", device_query::heaps(p.memory));
  add("one allocation", device_query::mebibytes(p.allocation_limit));
  add("one buffer", device_query::mebibytes(p.buffer_limit) + (p.sparse ? ", sparse" : ""));
  add("subgroups", std::to_string(f.subgroup) + ", sizes " + std::to_string(f.least_subgroup) + " to " + std::to_string(f.most_subgroup));
  add("workgroups", std::to_string(f.invocations) + " invocations, " + std::to_string(f.shared_bytes) + " bytes shared");
  add("clock", p.timestamp_bits == 0 ? "none" : std::to_string(p.timestamp_bits) + " bits");
  add("f32 modes", device_query::modes_of(p.modes));
  add("f16 arithmetic", f.float16 ? "yes" : "no");
  const std::string matrices = device_query::matrices_of(f);
  add("matrix units", !p.has_matrix ? "none" : matrices.empty() ? "none with f32 sums of f16 or bf16" : matrices);
  if (!f.distrusted.empty()) add("matrix units distrusted", f.distrusted);
  add("matrices of a workgroup", p.has_matrix2 ? "yes" : "no");
  return d;
}

}  // namespace isotope::vulkan
