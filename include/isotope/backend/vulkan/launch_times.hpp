#pragma once
/// How long each dispatch takes, by the device's own clock.
#include <span>
#include <vector>

#include "../queue/launch_times.hpp"
#include "command_buffers.hpp"

namespace isotope::vulkan {

/// Runs recorded dispatches once with timestamps around each. @error missing_feature where the queue has no clock, device_lost
inline result<std::vector<launch_time>> time_launches(const command_pool& pool, const pipelines& made, std::span<const dispatch> all,
                                                      std::span<const std::uint8_t> before) {
  context& c = *pool.owner();
  if (c.physical().timestamp_bits == 0)
    return fail(errc::missing_feature, c.physical().name + " has no timestamps", "vulkan", "time whole steps instead");
  const VkQueryPoolCreateInfo info{
      VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO, nullptr, 0, VK_QUERY_TYPE_TIMESTAMP, std::uint32_t(2 * all.size()), 0};
  VkQueryPool queries = VK_NULL_HANDLE;
  if (const auto s = c.f().CreateQueryPool(c.handle(), &info, nullptr, &queries); s != VK_SUCCESS) return failed(s, "timestamps");
  c.name(VK_OBJECT_TYPE_QUERY_POOL, queries, "isotope clock");
  const auto run = [&]() -> result<std::vector<launch_time>> {
    auto commands = pool.buffer();
    if (!commands) return commands.error();
    if (auto r = record_commands(c, made, *commands, all, before, {queries}); !r) return r.error();
    auto value = c.submit(*commands);
    if (!value) return value.error();
    if (auto r = c.wait(*value); !r) return r.error();
    std::vector<std::uint64_t> ticks(2 * all.size());
    const auto s = c.f().GetQueryPoolResults(c.handle(), queries, 0, std::uint32_t(ticks.size()), ticks.size() * 8, ticks.data(), 8,
                                             VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
    if (s != VK_SUCCESS) return failed(s, "reading timestamps");
    const double period = double(c.physical().properties.limits.timestampPeriod) * 1e-3;
    std::vector<launch_time> times;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const dispatch& d = all[i];
      times.push_back({d.step, d.code->name, d.set, d.reason, double(ticks[2 * i + 1] - ticks[2 * i]) * period, bytes_of(d)});
    }
    return times;
  };
  auto r = run();
  c.f().DestroyQueryPool(c.handle(), queries, nullptr);
  return r;
}

}  // namespace isotope::vulkan
