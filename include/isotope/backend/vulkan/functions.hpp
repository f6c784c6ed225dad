#pragma once
/// The Vulkan entry points that isotope calls. They are loaded at run time, so programs do not link libvulkan and start on machines without it.
#include <dlfcn.h>
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include <initializer_list>
#include <memory>
#include <string>

#include "../../core/error.hpp"

namespace isotope::vulkan {

// clang-format off
#define ISOTOPE_VULKAN_GLOBAL(X) X(EnumerateInstanceVersion) X(EnumerateInstanceLayerProperties) X(EnumerateInstanceExtensionProperties) X(CreateInstance)
#define ISOTOPE_VULKAN_INSTANCE(X) \
  X(DestroyInstance) X(EnumeratePhysicalDevices) X(EnumerateDeviceExtensionProperties) X(GetPhysicalDeviceProperties2) \
  X(GetPhysicalDeviceFeatures2) X(GetPhysicalDeviceMemoryProperties2) X(GetPhysicalDeviceQueueFamilyProperties) X(CreateDevice) X(GetDeviceProcAddr)
#define ISOTOPE_VULKAN_DEVICE(X) \
  X(DestroyDevice) X(GetDeviceQueue) X(DeviceWaitIdle) X(QueueSubmit2) X(QueueBindSparse) \
  X(AllocateMemory) X(FreeMemory) X(MapMemory) X(UnmapMemory) \
  X(CreateBuffer) X(DestroyBuffer) X(BindBufferMemory) X(GetBufferMemoryRequirements) X(GetBufferDeviceAddress) \
  X(CreateShaderModule) X(DestroyShaderModule) X(CreatePipelineLayout) X(DestroyPipelineLayout) X(CreateComputePipelines) X(DestroyPipeline) \
  X(CreatePipelineCache) X(DestroyPipelineCache) X(GetPipelineCacheData) \
  X(CreateCommandPool) X(DestroyCommandPool) X(AllocateCommandBuffers) X(FreeCommandBuffers) X(BeginCommandBuffer) X(EndCommandBuffer) \
  X(CmdBindPipeline) X(CmdPushConstants) X(CmdDispatch) X(CmdPipelineBarrier2) X(CmdCopyBuffer) X(CmdFillBuffer) \
  X(CmdResetQueryPool) X(CmdWriteTimestamp2) X(CreateQueryPool) X(DestroyQueryPool) X(GetQueryPoolResults) \
  X(CreateSemaphore) X(DestroySemaphore) X(WaitSemaphores) X(GetSemaphoreCounterValue)
// clang-format on

struct functions {
  PFN_vkGetInstanceProcAddr GetInstanceProcAddr = nullptr;
#define ISOTOPE_VULKAN_MEMBER(name) PFN_vk##name name = nullptr;
  ISOTOPE_VULKAN_GLOBAL(ISOTOPE_VULKAN_MEMBER)
  ISOTOPE_VULKAN_INSTANCE(ISOTOPE_VULKAN_MEMBER)
  ISOTOPE_VULKAN_DEVICE(ISOTOPE_VULKAN_MEMBER)
#undef ISOTOPE_VULKAN_MEMBER
  // Functions of extensions; null if the extension is not enabled.
  PFN_vkSetDebugUtilsObjectNameEXT SetDebugUtilsObjectNameEXT = nullptr;
  PFN_vkCreateDebugUtilsMessengerEXT CreateDebugUtilsMessengerEXT = nullptr;
  PFN_vkDestroyDebugUtilsMessengerEXT DestroyDebugUtilsMessengerEXT = nullptr;
  PFN_vkCmdBeginDebugUtilsLabelEXT CmdBeginDebugUtilsLabelEXT = nullptr;
  PFN_vkCmdEndDebugUtilsLabelEXT CmdEndDebugUtilsLabelEXT = nullptr;
  PFN_vkVoidFunction GetPhysicalDeviceCooperativeMatrixPropertiesKHR = nullptr;

  void take_instance(VkInstance i) {
    const auto take = [&](const char* name) { return GetInstanceProcAddr(i, name); };
#define ISOTOPE_VULKAN_TAKE(name) name = reinterpret_cast<PFN_vk##name>(take("vk" #name));
    ISOTOPE_VULKAN_INSTANCE(ISOTOPE_VULKAN_TAKE)
    ISOTOPE_VULKAN_TAKE(SetDebugUtilsObjectNameEXT)
    ISOTOPE_VULKAN_TAKE(CreateDebugUtilsMessengerEXT)
    ISOTOPE_VULKAN_TAKE(DestroyDebugUtilsMessengerEXT)
    ISOTOPE_VULKAN_TAKE(CmdBeginDebugUtilsLabelEXT)
    ISOTOPE_VULKAN_TAKE(CmdEndDebugUtilsLabelEXT)
    GetPhysicalDeviceCooperativeMatrixPropertiesKHR = take("vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
  }
  void take_device(VkDevice d) {
    const auto take = [&](const char* name) { return GetDeviceProcAddr(d, name); };
    ISOTOPE_VULKAN_DEVICE(ISOTOPE_VULKAN_TAKE)
#undef ISOTOPE_VULKAN_TAKE
  }
  /// Turns all destroy and free functions into no-ops. For a device that hangs: its work may still be running and using its memory.
  void abandon() {
    const auto nothing = [](auto...) {};
    DestroyInstance = nothing, DestroyDebugUtilsMessengerEXT = nothing, DestroyDevice = nothing;
    DestroyBuffer = nothing, FreeMemory = nothing, DestroyPipeline = nothing, DestroyPipelineCache = nothing,
    DestroyPipelineLayout = nothing;
    DestroyCommandPool = nothing, DestroyQueryPool = nothing, DestroySemaphore = nothing;
    abandoned = true;
  }
  bool abandoned = false;
};

/// The Vulkan loader library, which stays open while the object lives.
class library {
 public:
  library() = default;
  library(const library&) = delete;
  library& operator=(const library&) = delete;
  ~library() {
    if (handle_ != nullptr && !table.abandoned) dlclose(handle_);
  }

  /// Opens the first of these libraries that exists. @error no_device where there is none, with the names that were tried
  static result<std::shared_ptr<library>> open(std::initializer_list<const char*> names = {"libvulkan.so.1", "libvulkan.so",
                                                                                           "libvulkan.1.dylib", "libMoltenVK.dylib"}) {
    auto l = std::make_shared<library>();
    std::string tried;
    for (const char* name : names) {
      tried += std::string(tried.empty() ? "" : ", ") + name;
      l->handle_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
      if (l->handle_ != nullptr) break;
    }
    if (l->handle_ == nullptr)
      return fail(errc::no_device, "no Vulkan loader: looked for " + tried, "vulkan",
                  "apt-get install libvulkan1 and the driver of the GPU (mesa-vulkan-drivers runs on the processor), or rebuild with "
                  "-DBACKEND=cpu");
    l->table.GetInstanceProcAddr = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(l->handle_, "vkGetInstanceProcAddr"));
    if (l->table.GetInstanceProcAddr == nullptr)
      return fail(errc::no_device, "the Vulkan loader has no vkGetInstanceProcAddr", "vulkan", "reinstall libvulkan1");
#define ISOTOPE_VULKAN_TAKE(name) l->table.name = reinterpret_cast<PFN_vk##name>(l->table.GetInstanceProcAddr(nullptr, "vk" #name));
    ISOTOPE_VULKAN_GLOBAL(ISOTOPE_VULKAN_TAKE)
#undef ISOTOPE_VULKAN_TAKE
    return l;
  }

  functions table;

 private:
  void* handle_ = nullptr;
};

}  // namespace isotope::vulkan
