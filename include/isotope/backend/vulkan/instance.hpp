#pragma once
/// The Vulkan loader, an instance, and its physical devices with their features and limits.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "extension_structs.hpp"
#include "options.hpp"
#include "physical_device.hpp"
#include "status.hpp"
#include "subgroups.hpp"

namespace isotope::vulkan {

/// Keeps counts and texts of the validation layer's messages.
class message_log {
 public:
  void add(std::string_view text, bool warning) {
    const std::lock_guard lock(mutex_);
    (warning ? warnings_ : errors_) += 1;
    if (texts_.size() < 100) texts_.emplace_back(text);
  }
  int errors() const { return errors_; }
  int warnings() const { return warnings_; }
  std::vector<std::string> texts() const {
    const std::lock_guard lock(mutex_);
    return texts_;
  }

 private:
  mutable std::mutex mutex_;
  std::atomic<int> errors_ = 0, warnings_ = 0;
  std::vector<std::string> texts_;
};

namespace device_query {
inline device_kind kind_of(VkPhysicalDeviceType t) {
  if (t == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU || t == VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU) return device_kind::discrete;
  return t == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU ? device_kind::integrated : device_kind::cpu;
}

inline std::vector<std::string> extensions(const functions& f, VkPhysicalDevice d) {
  std::uint32_t n = 0;
  f.EnumerateDeviceExtensionProperties(d, nullptr, &n, nullptr);
  std::vector<VkExtensionProperties> all(n);
  f.EnumerateDeviceExtensionProperties(d, nullptr, &n, all.data());
  std::vector<std::string> names;
  for (const auto& e : all) names.emplace_back(e.extensionName);
  return names;
}

inline void matrices(const functions& f, physical_device& p) {
  const auto get = reinterpret_cast<get_cooperative_matrices>(f.GetPhysicalDeviceCooperativeMatrixPropertiesKHR);
  std::uint32_t n = 0;
  if (get == nullptr || get(p.handle, &n, nullptr) != VK_SUCCESS) return;
  std::vector<cooperative_matrix_properties> all(n);
  if (get(p.handle, &n, all.data()) != VK_SUCCESS) return;
  std::vector<matrix_shape>& found = p.limits.matrices;  // sorted by size, the largest first; the driver's order among equals
  const auto larger = [](const matrix_shape& a, const matrix_shape& b) { return a.m * a.n * a.k > b.m * b.n * b.k; };
  const auto add = [&](const matrix_shape& x) { found.insert(std::upper_bound(found.begin(), found.end(), x, larger), x); };
  for (const auto& m : all) {
    if (m.scope != scope_subgroup || m.a != m.b || m.c != m.result || m.c != component_f32) continue;
    if (m.a == component_f16) add({m.m, m.n, m.k, dtype::f16, dtype::f32});
    if (m.a == component_bf16 && p.has_bfloat16) add({m.m, m.n, m.k, dtype::bf16, dtype::f32});
  }
}

inline void features(const functions& f, physical_device& p) {
  const auto names = extensions(f, p.handle);
  const auto has = [&](std::string_view e) { return std::find(names.begin(), names.end(), e) != names.end(); };
  VkPhysicalDeviceFeatures2 base{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, nullptr, {}};
  VkPhysicalDeviceVulkan11Features v11{};
  v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
  VkPhysicalDeviceVulkan12Features v12{};
  v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  VkPhysicalDeviceVulkan13Features v13{};
  v13.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES;
  cooperative_matrix_features matrix;
  cooperative_matrix2_features matrix2;
  bfloat16_features bfloat;
  base.pNext = &v11;
  v11.pNext = &v12;
  v12.pNext = &v13;
  void** end = &v13.pNext;
  const auto append = [&](auto& s, bool wanted) {
    if (!wanted) return;
    *end = &s;
    end = &s.next;
  };
  append(matrix, has("VK_KHR_cooperative_matrix"));
  append(matrix2, has("VK_NV_cooperative_matrix2"));
  append(bfloat, has("VK_KHR_shader_bfloat16"));
  f.GetPhysicalDeviceFeatures2(p.handle, &base);
  const auto need = [&](VkBool32 x, const char* name) {
    if (x == 0) p.missing += std::string(p.missing.empty() ? "" : ", ") + name;
  };
  need(base.features.shaderInt64, "shaderInt64");
  need(v11.storageBuffer16BitAccess, "storageBuffer16BitAccess");
  need(v12.storageBuffer8BitAccess, "storageBuffer8BitAccess");
  need(v12.bufferDeviceAddress, "bufferDeviceAddress");
  need(v12.scalarBlockLayout, "scalarBlockLayout");
  need(v12.timelineSemaphore, "timelineSemaphore");
  need(v12.vulkanMemoryModel, "vulkanMemoryModel");
  need(v12.vulkanMemoryModelDeviceScope, "vulkanMemoryModelDeviceScope");
  need(v13.synchronization2, "synchronization2");
  need(v13.subgroupSizeControl, "subgroupSizeControl");
  need(v13.computeFullSubgroups, "computeFullSubgroups");
  need(v13.maintenance4, "maintenance4");
  p.limits.float16 = v12.shaderFloat16 != 0;
  p.sparse = base.features.sparseBinding != 0;
  p.memory_budget = has("VK_EXT_memory_budget");
  p.has_bfloat16 = bfloat.bfloat16 != 0 && bfloat.cooperative_matrix != 0;
  p.has_matrix = matrix.cooperative_matrix != 0;
  p.has_matrix2 = p.has_matrix && matrix2.workgroup_scope != 0 && matrix2.flexible_dimensions != 0 && matrix2.tensor_addressing != 0 &&
                  matrix2.per_element != 0 && matrix2.conversions != 0 && matrix2.reductions != 0;
  p.limits.matrix2 = p.has_matrix2;
  if (p.has_matrix) matrices(f, p);
}

inline void limits(const functions& f, physical_device& p) {
  const auto names = extensions(f, p.handle);
  VkPhysicalDeviceProperties2 base{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, nullptr, {}};
  VkPhysicalDeviceVulkan11Properties v11{};
  v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES;
  VkPhysicalDeviceVulkan12Properties v12{};
  v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES;
  VkPhysicalDeviceVulkan13Properties v13{};
  v13.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES;
  multiprocessor_properties units;
  base.pNext = &v11;
  v11.pNext = &v12;
  v12.pNext = &v13;
  if (std::find(names.begin(), names.end(), "VK_NV_shader_sm_builtins") != names.end()) v13.pNext = &units;
  f.GetPhysicalDeviceProperties2(p.handle, &base);
  p.properties = base.properties;
  p.name = base.properties.deviceName;
  p.driver = std::string(v12.driverName) + " " + v12.driverInfo;
  p.kind = kind_of(base.properties.deviceType);
  p.modes = {v12.shaderDenormPreserveFloat32 != 0, v12.shaderDenormFlushToZeroFloat32 != 0, v12.shaderSignedZeroInfNanPreserveFloat32 != 0,
             v12.shaderRoundingModeRTEFloat32 != 0, v12.shaderRoundingModeRTZFloat32 != 0};
  p.limits.shared_bytes = base.properties.limits.maxComputeSharedMemorySize;
  p.limits.invocations = std::min(base.properties.limits.maxComputeWorkGroupInvocations, base.properties.limits.maxComputeWorkGroupSize[0]);
  if (units.count != 0) p.limits.multiprocessors = units.count;
  else if (p.kind == device_kind::cpu) p.limits.multiprocessors = 2;
  // Vulkan promises no workgroup that it runs while others wait for it. This driver starts workgroups while there is room for them, and one fits each multiprocessor.
  if (v12.driverID == VK_DRIVER_ID_NVIDIA_PROPRIETARY) p.limits.step_workgroups = units.count;
  p.allocation_limit = std::int64_t(std::min<VkDeviceSize>(v11.maxMemoryAllocationSize, VkDeviceSize(1) << 62));
  p.buffer_limit = std::int64_t(std::min<VkDeviceSize>(v13.maxBufferSize, VkDeviceSize(1) << 62));
  std::memcpy(p.cache_uuid, base.properties.pipelineCacheUUID, VK_UUID_SIZE);
  if (base.properties.apiVersion < VK_API_VERSION_1_3)
    p.missing += std::string(p.missing.empty() ? "" : ", ") + "Vulkan 1.3 (it has 1." +
                 std::to_string(VK_API_VERSION_MINOR(base.properties.apiVersion)) + ")";
  else  // an older device does not report subgroup sizes
    p.missing = take_subgroups({v11.subgroupSize, v13.minSubgroupSize, v13.maxSubgroupSize, v13.maxComputeWorkgroupSubgroups,
                                v11.subgroupSupportedStages, v13.requiredSubgroupSizeStages, v11.subgroupSupportedOperations},
                               p.limits);
}

inline void queues(const functions& f, physical_device& p) {
  std::uint32_t n = 0;
  f.GetPhysicalDeviceQueueFamilyProperties(p.handle, &n, nullptr);
  std::vector<VkQueueFamilyProperties> all(n);
  f.GetPhysicalDeviceQueueFamilyProperties(p.handle, &n, all.data());
  int best = -1;
  // A family with graphics has the most features, so it is preferred; drivers without graphics have others.
  for (std::uint32_t i = 0; i < n; ++i) {
    if ((all[i].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) continue;
    const bool draws = (all[i].queueFlags & VK_QUEUE_GRAPHICS_BIT) != 0;
    if (best < 0 || (draws && (all[std::size_t(best)].queueFlags & VK_QUEUE_GRAPHICS_BIT) == 0)) best = int(i);
  }
  if (best < 0) {
    p.missing += std::string(p.missing.empty() ? "" : ", ") + "a compute queue";
    return;
  }
  p.family = std::uint32_t(best);
  p.timestamp_bits = all[std::size_t(best)].timestampValidBits;
  p.sparse = p.sparse && (all[std::size_t(best)].queueFlags & VK_QUEUE_SPARSE_BINDING_BIT) != 0;
}
}  // namespace device_query

/// A Vulkan instance and its devices. Every device that is opened from it shares it.
class instance {
 public:
  instance() = default;
  instance(const instance&) = delete;
  instance& operator=(const instance&) = delete;
  ~instance() {
    if (messenger_ != VK_NULL_HANDLE) table().DestroyDebugUtilsMessengerEXT(handle_, messenger_, nullptr);
    if (owned_ && handle_ != nullptr) table().DestroyInstance(handle_, nullptr);
  }

  /// Creates an instance. @error no_device: there is no loader or no driver; missing_feature: validation is requested but the layer is not installed
  static result<std::shared_ptr<instance>> open(const diagnostics& d) {
    auto loaded = library::open();
    if (!loaded) return loaded.error();
    auto r = std::make_shared<instance>();
    r->library_ = *loaded;
    auto& f = r->table();
    std::uint32_t version = VK_API_VERSION_1_0;
    if (f.EnumerateInstanceVersion != nullptr) f.EnumerateInstanceVersion(&version);
    if (version < VK_API_VERSION_1_3)
      return fail(errc::no_device, "the Vulkan loader is of version 1." + std::to_string(VK_API_VERSION_MINOR(version)) + ", 1.3 is needed",
                  "vulkan", "update libvulkan1");
    std::vector<const char*> layers, extensions;
    if (d.validate) {
      if (!r->has_layer("VK_LAYER_KHRONOS_validation"))
        return fail(errc::missing_feature, "validation was asked for and VK_LAYER_KHRONOS_validation is not installed", "vulkan",
                    "apt-get install vulkan-validationlayers");
      layers.push_back("VK_LAYER_KHRONOS_validation");
    }
    const bool debug = (d.validate || d.names) && r->has_extension("VK_EXT_debug_utils");
    // The validation layer provides this extension even if the driver does not.
    if (debug || (d.validate)) extensions.push_back("VK_EXT_debug_utils");
    if (r->has_extension("VK_KHR_portability_enumeration")) extensions.push_back("VK_KHR_portability_enumeration");
    VkApplicationInfo app{VK_STRUCTURE_TYPE_APPLICATION_INFO, nullptr, "isotope", 1, "isotope", 1, VK_API_VERSION_1_3};
    VkDebugUtilsMessengerCreateInfoEXT listen{
        VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
        nullptr,
        0,
        VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
        VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT |
            VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT,
        &instance::heard,
        &r->log};
    const VkValidationFeatureEnableEXT enabled[] = {VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT,
                                                    VK_VALIDATION_FEATURE_ENABLE_BEST_PRACTICES_EXT};
    VkValidationFeaturesEXT validation{VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT, &listen, 2, enabled, 0, nullptr};
    VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                              d.validate ? static_cast<const void*>(&validation) : nullptr,
                              r->has_extension("VK_KHR_portability_enumeration") ? VkInstanceCreateFlags(1) : 0,
                              &app,
                              std::uint32_t(layers.size()),
                              layers.data(),
                              std::uint32_t(extensions.size()),
                              extensions.data()};
    if (const auto s = f.CreateInstance(&info, nullptr, &r->handle_); s != VK_SUCCESS) {
      r->handle_ = nullptr;
      if (s == VK_ERROR_INCOMPATIBLE_DRIVER)
        return fail(errc::no_device, "the Vulkan loader found no driver (VK_ERROR_INCOMPATIBLE_DRIVER)", "vulkan",
                    "install the driver of the GPU, or apt-get install mesa-vulkan-drivers for the processor");
      return failed(s, "creating a Vulkan instance");
    }
    f.take_instance(r->handle_);
    if (d.validate && f.CreateDebugUtilsMessengerEXT != nullptr)
      f.CreateDebugUtilsMessengerEXT(r->handle_, &listen, nullptr, &r->messenger_);
    r->look();
    return r;
  }
  /// Uses an instance of the application; `get` is its vkGetInstanceProcAddr.
  static result<std::shared_ptr<instance>> adopt(VkInstance handle, PFN_vkGetInstanceProcAddr get) {
    auto r = std::make_shared<instance>();
    r->adopted_.GetInstanceProcAddr = get;
    r->handle_ = handle;
    r->owned_ = false;
    r->table().take_instance(handle);
    r->look();
    return r;
  }

  functions& table() { return owned_ ? library_->table : adopted_; }
  VkInstance handle() const { return handle_; }
  /// Every device, the best kind first: discrete, integrated, processor; in the driver's order within a kind.
  const std::vector<physical_device>& devices() const { return devices_; }

  message_log log;

 private:
  std::shared_ptr<library> library_;
  functions adopted_;
  VkInstance handle_ = nullptr;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  std::vector<physical_device> devices_;
  bool owned_ = true;

  bool has_layer(std::string_view name) {
    std::uint32_t n = 0;
    table().EnumerateInstanceLayerProperties(&n, nullptr);
    std::vector<VkLayerProperties> all(n);
    table().EnumerateInstanceLayerProperties(&n, all.data());
    return std::any_of(all.begin(), all.end(), [&](const auto& l) { return name == l.layerName; });
  }
  bool has_extension(std::string_view name) {
    std::uint32_t n = 0;
    table().EnumerateInstanceExtensionProperties(nullptr, &n, nullptr);
    std::vector<VkExtensionProperties> all(n);
    table().EnumerateInstanceExtensionProperties(nullptr, &n, all.data());
    return std::any_of(all.begin(), all.end(), [&](const auto& e) { return name == e.extensionName; });
  }
  void look() {
    std::uint32_t n = 0;
    if (table().EnumeratePhysicalDevices(handle_, &n, nullptr) != VK_SUCCESS) return;
    std::vector<VkPhysicalDevice> all(n);
    if (n == 0 || table().EnumeratePhysicalDevices(handle_, &n, all.data()) < 0) return;
    for (auto h : all) {
      physical_device p;
      p.handle = h;
      device_query::limits(table(), p);
      device_query::features(table(), p);
      device_query::queues(table(), p);
      VkPhysicalDeviceMemoryProperties2 m{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, nullptr, {}};
      table().GetPhysicalDeviceMemoryProperties2(h, &m);
      p.memory = m.memoryProperties;
      add_by_kind(devices_, std::move(p));
    }
  }
  static VKAPI_ATTR VkBool32 VKAPI_CALL heard(VkDebugUtilsMessageSeverityFlagBitsEXT severity, VkDebugUtilsMessageTypeFlagsEXT,
                                              const VkDebugUtilsMessengerCallbackDataEXT* data, void* log) {
    std::string text = data->pMessage;
    if (data->pMessageIdName != nullptr && text.find(data->pMessageIdName) == text.npos)  // newer layers do not include the name
      text = std::string(data->pMessageIdName) + ": " + text;
    static_cast<message_log*>(log)->add(text, severity < VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT);
    return VK_FALSE;
  }
};

}  // namespace isotope::vulkan
