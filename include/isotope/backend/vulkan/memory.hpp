#pragma once
/// Device memory with an address: a buffer bound to one allocation, or to several if it is larger than an allocation may be. Mapped memory is
/// host-coherent, which every device offers (Vulkan 1.3, 11.2.1), so nothing has to be flushed or invalidated.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../queue/memory_use.hpp"
#include "context.hpp"

namespace isotope::vulkan {

/// Chooses the memory type for a use, among those whose bit is set in `allowed`: it has all needed properties, and the best score for the liked and disliked
/// ones. -1: no type has the needed properties.
inline int type_for(const VkPhysicalDeviceMemoryProperties& device, memory_use use, std::uint32_t allowed) {
  constexpr VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, host = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT,
                                  cached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT, coherent = VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  struct wish {
    VkMemoryPropertyFlags needed, liked, disliked;
  };
  const wish w = use == memory_use::device   ? wish{local, 0, host}
                 : use == memory_use::upload ? wish{host | coherent, local, cached}
                                             : wish{host | coherent, cached, local};
  int best = -1, best_score = std::numeric_limits<int>::min();
  for (std::uint32_t i = 0; i < device.memoryTypeCount; ++i) {
    const auto flags = device.memoryTypes[i].propertyFlags;
    if (((allowed >> i) & 1u) == 0 || (flags & w.needed) != w.needed) continue;
    const int score = 2 * std::popcount(flags & w.liked) - std::popcount(flags & w.disliked);
    if (score > best_score) best = int(i), best_score = score;
  }
  return best;
}

/// The size of the heap that a memory type uses.
inline std::int64_t heap_bytes(const physical_device& p, int type) {
  return std::int64_t(p.memory.memoryHeaps[p.memory.memoryTypes[type].heapIndex].size);
}
/// The bytes that this process uses in all heaps of a device, as the driver counts them. @error missing_feature without VK_EXT_memory_budget
inline result<std::int64_t> memory_in_use(const context& c) {
  const physical_device& p = c.physical();
  if (!p.memory_budget)
    return fail(errc::missing_feature, p.name + " does not say what a process has of its memory", "vulkan",
                "a driver with VK_EXT_memory_budget");
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{};
  budget.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT;
  VkPhysicalDeviceMemoryProperties2 all{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, &budget, {}};
  c.f().GetPhysicalDeviceMemoryProperties2(p.handle, &all);
  std::int64_t sum = 0;
  for (std::uint32_t k = 0; k < all.memoryProperties.memoryHeapCount; ++k) sum += std::int64_t(budget.heapUsage[k]);
  return sum;
}

/// The device's own memory: of the heaps that are local to it, what this process may still allocate and their sizes, as the driver says.
/// @error missing_feature without VK_EXT_memory_budget
inline result<device_memory> memory_left(const context& c) {
  const physical_device& p = c.physical();
  if (!p.memory_budget)
    return fail(errc::missing_feature, p.name + " does not say how much of its memory is free", "vulkan",
                "a driver with VK_EXT_memory_budget");
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{};
  budget.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT;
  VkPhysicalDeviceMemoryProperties2 all{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, &budget, {}};
  c.f().GetPhysicalDeviceMemoryProperties2(p.handle, &all);
  device_memory sum;
  for (std::uint32_t k = 0; k < all.memoryProperties.memoryHeapCount; ++k) {
    if ((all.memoryProperties.memoryHeaps[k].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) == 0) continue;
    sum.total += std::int64_t(all.memoryProperties.memoryHeaps[k].size);
    sum.free += std::max<std::int64_t>(std::int64_t(budget.heapBudget[k]) - std::int64_t(budget.heapUsage[k]), 0);
  }
  return sum;
}

class memory {
 public:
  memory() = default;
  memory(memory&& o) noexcept { swap(o); }
  memory& operator=(memory&& o) noexcept {
    swap(o);
    return *this;
  }
  ~memory() {
    if (context_ == nullptr) return;
    const auto& f = context_->f();
    if (buffer_ != VK_NULL_HANDLE) f.DestroyBuffer(context_->handle(), buffer_, nullptr);
    for (auto m : pieces_) f.FreeMemory(context_->handle(), m, nullptr);
  }

  /// `chunk` limits the bytes of one allocation; 0: the device's limit. @error out_of_memory with the sizes asked for and allowed
  static result<memory> allocate(std::shared_ptr<context> c, std::int64_t bytes, memory_use use, const std::string& label,
                                 std::int64_t chunk = 0) {
    memory m;
    m.context_ = std::move(c);
    m.bytes_ = std::max<std::int64_t>(bytes, 256);
    const physical_device& p = m.context_->physical();
    if (m.bytes_ > p.buffer_limit) return too_large(m.bytes_, p, "a buffer of at most " + std::to_string(p.buffer_limit));
    const std::int64_t limit = chunk > 0 ? std::min(chunk, p.allocation_limit) : p.allocation_limit;
    const bool sparse = m.bytes_ > limit;
    if (sparse && (!p.sparse || use != memory_use::device))
      return too_large(m.bytes_, p, "allocations of at most " + std::to_string(limit) + " and no sparse buffers");
    if (auto r = m.create(sparse, use, label, limit); !r) return r.error();
    return m;
  }

  std::uint64_t address() const { return address_; }
  std::int64_t bytes() const { return bytes_; }
  std::byte* mapped() const { return mapped_; }
  VkBuffer buffer() const { return buffer_; }
  std::int64_t pieces() const { return std::int64_t(pieces_.size()); }

 private:
  std::shared_ptr<context> context_;
  VkBuffer buffer_ = VK_NULL_HANDLE;
  std::vector<VkDeviceMemory> pieces_;
  std::uint64_t address_ = 0;
  std::int64_t bytes_ = 0;
  std::byte* mapped_ = nullptr;

  void swap(memory& o) noexcept {
    std::swap(context_, o.context_);
    std::swap(buffer_, o.buffer_);
    std::swap(pieces_, o.pieces_);
    std::swap(address_, o.address_);
    std::swap(bytes_, o.bytes_);
    std::swap(mapped_, o.mapped_);
  }
  static failure too_large(std::int64_t bytes, const physical_device& p, const std::string& allowed) {
    return fail(errc::out_of_memory, std::to_string(bytes) + " bytes were asked for, " + p.name + " has " + allowed, "vulkan",
                "use a smaller batch or model, or recompute blocks");
  }

  result<void> create(bool sparse, memory_use use, const std::string& label, std::int64_t limit) {
    const auto& f = context_->f();
    const VkDevice d = context_->handle();
    const VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                  nullptr,
                                  sparse ? VkBufferCreateFlags(VK_BUFFER_CREATE_SPARSE_BINDING_BIT) : VkBufferCreateFlags(0),
                                  VkDeviceSize(bytes_),
                                  VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT | VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                      VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT,
                                  VK_SHARING_MODE_EXCLUSIVE,
                                  0,
                                  nullptr};
    const std::string what = label + " of " + std::to_string(bytes_) + " bytes";
    if (const auto s = f.CreateBuffer(d, &info, nullptr, &buffer_); s != VK_SUCCESS) return failed(s, "a buffer for " + what);
    context_->name(VK_OBJECT_TYPE_BUFFER, buffer_, label);
    VkMemoryRequirements need{};
    f.GetBufferMemoryRequirements(d, buffer_, &need);
    const int type = type_for(context_->physical().memory, use, need.memoryTypeBits);
    if (type < 0) return fail(errc::out_of_memory, "no memory type for " + what, "vulkan", "another device");
    if (const auto heap = heap_bytes(context_->physical(), type); std::int64_t(need.size) > heap)
      return too_large(bytes_, context_->physical(), std::to_string(heap) + " in that memory");
    const VkDeviceSize piece = sparse ? VkDeviceSize(limit) / need.alignment * need.alignment : need.size;
    if (piece == 0)
      return fail(errc::invalid_argument,
                  "chunks of " + std::to_string(limit) + " bytes are below the device's granularity of " + std::to_string(need.alignment),
                  "vulkan", "larger chunks");
    std::vector<VkSparseMemoryBind> binds;
    for (VkDeviceSize at = 0; at < need.size; at += piece) {
      const VkDeviceSize size = std::min(piece, need.size - at);
      const VkMemoryAllocateFlagsInfo address{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO, nullptr, VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT,
                                              0};
      const VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, &address, size, std::uint32_t(type)};
      VkDeviceMemory m = VK_NULL_HANDLE;
      if (const auto s = f.AllocateMemory(d, &allocate, nullptr, &m); s != VK_SUCCESS)
        return failed(s, "memory for " + what + " (" + std::to_string(at) + " bytes were given)", context_->physical().name);
      ++context_->counters.allocations;
      pieces_.push_back(m);
      context_->name(VK_OBJECT_TYPE_DEVICE_MEMORY, m, label + " memory");
      binds.push_back({at, size, m, 0, 0});
    }
    if (sparse) {
      const VkSparseBufferMemoryBindInfo all{buffer_, std::uint32_t(binds.size()), binds.data()};
      if (auto r = context_->bind(all); !r) return r;
    } else if (const auto s = f.BindBufferMemory(d, buffer_, pieces_[0], 0); s != VK_SUCCESS) {
      return failed(s, "binding " + what);
    }
    if (use != memory_use::device) {
      void* p = nullptr;
      if (const auto s = f.MapMemory(d, pieces_[0], 0, VK_WHOLE_SIZE, 0, &p); s != VK_SUCCESS) return failed(s, "mapping " + what);
      mapped_ = static_cast<std::byte*>(p);
    }
    const VkBufferDeviceAddressInfo ask{VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO, nullptr, buffer_};
    address_ = f.GetBufferDeviceAddress(d, &ask);
    return {};
  }
};

}  // namespace isotope::vulkan
