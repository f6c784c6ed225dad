#pragma once
/// Command buffers, which are recorded once and submitted any number of times.
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../queue/hazards.hpp"
#include "memory.hpp"
#include "pipelines.hpp"

namespace isotope::vulkan {

/// A command pool, which owns its buffers until it is destroyed.
class command_pool {
 public:
  command_pool() = default;
  command_pool(command_pool&& o) noexcept : context_(std::move(o.context_)), pool_(std::exchange(o.pool_, VK_NULL_HANDLE)) {}
  command_pool& operator=(command_pool&& o) noexcept {
    std::swap(context_, o.context_);
    std::swap(pool_, o.pool_);
    return *this;
  }
  ~command_pool() {
    if (pool_ != VK_NULL_HANDLE) context_->f().DestroyCommandPool(context_->handle(), pool_, nullptr);
  }
  static result<command_pool> create(std::shared_ptr<context> c) {
    command_pool p;
    const VkCommandPoolCreateInfo info{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, nullptr, VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                       c->physical().family};
    if (const auto s = c->f().CreateCommandPool(c->handle(), &info, nullptr, &p.pool_); s != VK_SUCCESS) return failed(s, "a command pool");
    p.context_ = std::move(c);
    p.context_->name(VK_OBJECT_TYPE_COMMAND_POOL, p.pool_, "isotope commands");
    return p;
  }
  result<VkCommandBuffer> buffer() const {
    const VkCommandBufferAllocateInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, nullptr, pool_, VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                           1};
    VkCommandBuffer b = nullptr;
    if (const auto s = context_->f().AllocateCommandBuffers(context_->handle(), &info, &b); s != VK_SUCCESS)
      return failed(s, "a command buffer");
    context_->name(VK_OBJECT_TYPE_COMMAND_BUFFER, b, "isotope step");
    return b;
  }
  const std::shared_ptr<context>& owner() const { return context_; }

 private:
  std::shared_ptr<context> context_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
};

inline void barrier(const context& c, VkCommandBuffer b, VkPipelineStageFlags2 from, VkAccessFlags2 written, VkPipelineStageFlags2 to,
                    VkAccessFlags2 used) {
  const VkMemoryBarrier2 memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER_2, nullptr, from, written, to, used};
  const VkDependencyInfo all{VK_STRUCTURE_TYPE_DEPENDENCY_INFO, nullptr, 0, 1, &memory, 0, nullptr, 0, nullptr};
  c.f().CmdPipelineBarrier2(b, &all);
}

/// The pipeline stages that a session uses: compute for kernels, transfer for copies outside of steps.
inline constexpr VkPipelineStageFlags2 working_stages = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_2_ALL_TRANSFER_BIT;

/// Timestamps before and after each dispatch, for which the pool has two queries per dispatch; or only before dispatch `from` and after the last one. Null: none.
struct timing {
  VkQueryPool pool = VK_NULL_HANDLE;
  std::int64_t from = -1;  // -1: each dispatch is timed
  std::uint32_t queries(std::size_t dispatches) const { return from < 0 ? std::uint32_t(2 * dispatches) : 2; }
  /// The query that is written before dispatch i, or after it; -1: none.
  std::int64_t before(std::size_t i) const {
    return pool == VK_NULL_HANDLE ? -1 : from < 0 ? std::int64_t(2 * i) : std::int64_t(i) == from ? 0 : -1;
  }
  std::int64_t after(std::size_t i, std::size_t dispatches) const {
    return pool == VK_NULL_HANDLE ? -1 : from < 0 ? std::int64_t(2 * i + 1) : i + 1 == dispatches ? 1 : -1;
  }
};

/// Records dispatches, with a barrier before dispatch i where before[i] is set. A barrier at the start orders them after kernels and copies submitted
/// earlier on the queue; one at the end makes their results visible to the host.
inline result<void> record_commands(context& c, const pipelines& made, VkCommandBuffer b, std::span<const dispatch> all,
                                    std::span<const std::uint8_t> before, timing times = {}) {
  const auto& f = c.f();
  constexpr auto compute = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT;
  constexpr auto reads = VK_ACCESS_2_SHADER_STORAGE_READ_BIT, writes = VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT;
  const VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, nullptr, VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT,
                                       nullptr};  // a submission may have it several times
  if (const auto s = f.BeginCommandBuffer(b, &begin); s != VK_SUCCESS) return failed(s, "recording commands");
  if (times.pool != VK_NULL_HANDLE) f.CmdResetQueryPool(b, times.pool, 0, times.queries(all.size()));
  barrier(c, b, working_stages, VK_ACCESS_2_MEMORY_WRITE_BIT, compute, reads | writes);
  VkPipeline bound = VK_NULL_HANDLE;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const dispatch& d = all[i];
    if (before[i] != 0) barrier(c, b, compute, writes, compute, reads | writes);
    const VkPipeline p = made.of(d);
    if (p == VK_NULL_HANDLE)
      return fail(errc::missing_feature, "no pipeline was made for " + std::string(d.code->name), "vulkan",
                  "report this: pipelines are made before commands are recorded");
    if (p != bound) f.CmdBindPipeline(b, VK_PIPELINE_BIND_POINT_COMPUTE, p);
    bound = p;
    if (d.push_bytes > 0) f.CmdPushConstants(b, c.layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0, d.push_bytes, d.push.data());
    if (const auto q = times.before(i); q >= 0) f.CmdWriteTimestamp2(b, compute, times.pool, std::uint32_t(q));
    c.begin_label(b, std::to_string(d.step) + " " + std::string(d.code->name));
    f.CmdDispatch(b, d.count.x, d.count.y, d.count.z);
    c.end_label(b);
    if (const auto q = times.after(i, all.size()); q >= 0) f.CmdWriteTimestamp2(b, compute, times.pool, std::uint32_t(q));
  }
  barrier(c, b, compute, writes, VK_PIPELINE_STAGE_2_HOST_BIT, VK_ACCESS_2_HOST_READ_BIT);
  if (const auto s = f.EndCommandBuffer(b); s != VK_SUCCESS) return failed(s, "recording commands");
  return {};
}

}  // namespace isotope::vulkan
