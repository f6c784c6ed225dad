#pragma once
/// Emulates a pipeline cache for drivers whose own cache stays empty. It remembers which pipelines were created and reports cache hits as a driver does, and
/// its contents are saved and loaded like any driver's blob.
#include <cstdint>
#include <cstring>
#include <isotope/backend/vulkan/context.hpp>
#include <map>
#include <mutex>
#include <set>
#include <string_view>
#include <vector>

namespace isotope::vulkan_test {

/// Intercepts the calls between a device and its driver while this object lives. A process may have one such object at a time.
class remembering_driver {
 public:
  explicit remembering_driver(vulkan::context& c) : table_(c.f()) {
    driver_ = table_;
    known_.clear();
    modules_.clear();
    reads_ = 0;
    table_.CreatePipelineCache = [](VkDevice d, const VkPipelineCacheCreateInfo* info, const VkAllocationCallbacks* a,
                                    VkPipelineCache* out) {
      const std::lock_guard lock(mutex_);
      std::vector<std::uint64_t> all(info->initialDataSize / 8);
      if (!all.empty()) std::memcpy(all.data(), info->pInitialData, 8 * all.size());
      known_ = {all.begin(), all.end()};
      auto empty = *info;
      empty.initialDataSize = 0, empty.pInitialData = nullptr;
      return driver_.CreatePipelineCache(d, &empty, a, out);
    };
    table_.GetPipelineCacheData = [](VkDevice, VkPipelineCache, std::size_t* bytes, void* to) {
      const std::lock_guard lock(mutex_);
      const std::vector<std::uint64_t> all(known_.begin(), known_.end());
      *bytes = 8 * all.size();
      if (to != nullptr) std::memcpy(to, all.data(), *bytes), ++reads_;
      return VK_SUCCESS;
    };
    table_.CreateShaderModule = [](VkDevice d, const VkShaderModuleCreateInfo* info, const VkAllocationCallbacks* a, VkShaderModule* out) {
      const auto s = driver_.CreateShaderModule(d, info, a, out);
      const std::lock_guard lock(mutex_);
      if (s == VK_SUCCESS) modules_[*out] = hash(info->pCode, info->codeSize, 1);
      return s;
    };
    table_.CreateComputePipelines = [](VkDevice d, VkPipelineCache cache, std::uint32_t n, const VkComputePipelineCreateInfo* info,
                                       const VkAllocationCallbacks* a, VkPipeline* out) {
      const auto s = driver_.CreateComputePipelines(d, cache, n, info, a, out);
      if (s != VK_SUCCESS || cache == VK_NULL_HANDLE || n != 1) return s;
      const std::lock_guard lock(mutex_);
      const bool found = !known_.insert(hash_of(info->stage)).second;
      for (auto* next = static_cast<const VkBaseInStructure*>(info->pNext); next != nullptr; next = next->pNext)
        if (next->sType == VK_STRUCTURE_TYPE_PIPELINE_CREATION_FEEDBACK_CREATE_INFO) {
          auto& told = reinterpret_cast<const VkPipelineCreationFeedbackCreateInfo*>(next)->pPipelineCreationFeedback->flags;
          told = VK_PIPELINE_CREATION_FEEDBACK_VALID_BIT;
          if (found) told |= VK_PIPELINE_CREATION_FEEDBACK_APPLICATION_PIPELINE_CACHE_HIT_BIT;
        }
      return s;
    };
  }
  remembering_driver(const remembering_driver&) = delete;
  remembering_driver& operator=(const remembering_driver&) = delete;
  ~remembering_driver() { table_ = driver_; }

  /// How often the blob was read to be saved.
  int reads() const { return reads_; }

 private:
  vulkan::functions& table_;
  static inline vulkan::functions driver_;
  static inline std::mutex mutex_;
  static inline std::set<std::uint64_t> known_;
  static inline std::map<VkShaderModule, std::uint64_t> modules_;
  static inline int reads_ = 0;

  static std::uint64_t hash(const void* data, std::size_t bytes, std::uint64_t seed) {  // FNV-1a
    std::uint64_t h = 0xcbf29ce484222325u ^ seed;
    for (std::size_t i = 0; i < bytes; ++i) h = (h ^ static_cast<const std::uint8_t*>(data)[i]) * 0x100000001b3u;
    return h;
  }
  /// A hash of everything that a driver compiles from: words, name, constants, flags and subgroup size.
  static std::uint64_t hash_of(const VkPipelineShaderStageCreateInfo& stage) {
    std::uint64_t h = hash(stage.pName, std::string_view(stage.pName).size(), modules_[stage.module]);
    if (const auto* c = stage.pSpecializationInfo; c != nullptr) {
      h = hash(c->pMapEntries, c->mapEntryCount * sizeof(VkSpecializationMapEntry), h);
      h = hash(c->pData, c->dataSize, h);
    }
    h = hash(&stage.flags, sizeof stage.flags, h);
    for (auto* next = static_cast<const VkBaseInStructure*>(stage.pNext); next != nullptr; next = next->pNext)
      if (next->sType == VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO) {
        const auto size = reinterpret_cast<const VkPipelineShaderStageRequiredSubgroupSizeCreateInfo*>(next)->requiredSubgroupSize;
        h = hash(&size, sizeof size, h);
      }
    return h;
  }
};

}  // namespace isotope::vulkan_test
