#pragma once
/// One opened device and its queue. All work is submitted and waited for here, and the loss of the device is noticed here.
#include <atomic>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "../queue/thread_owner.hpp"
#include "describe.hpp"

namespace isotope::vulkan {

/// Vulkan objects of an application that isotope is to use. The application creates them with Vulkan 1.3 and with the required and optional features that
/// device_query::features reads, and keeps them alive longer than every object made from them. No other thread may use `queue` while a session runs.
struct native_handles {
  PFN_vkGetInstanceProcAddr get_instance_proc_addr = nullptr;
  VkInstance instance = nullptr;
  VkPhysicalDevice physical_device = nullptr;
  VkDevice device = nullptr;
  VkQueue queue = nullptr;
  std::uint32_t queue_family = 0;
  bool matrix_units =
      false;  // the device was made with the extensions for matrices that it has; without them kernels leave matrix units alone
};

/// A timeout in Vulkan's unit. From 1e9 seconds on, infinity included, it means no limit.
inline std::uint64_t nanoseconds(double seconds) {
  return seconds < 1e9 ? std::uint64_t(seconds * 1e9) : std::numeric_limits<std::uint64_t>::max();
}
inline result<void> check_timeout(double seconds) {
  if (seconds >= 0) return {};
  return fail(errc::invalid_argument, "timeout_seconds is " + std::to_string(seconds) + ", not a number of seconds from 0 on",
              "device options", "leave it at 60, or give infinity for no limit");
}

/// Counts of what was done on a device since it was opened.
struct context_counters {
  std::atomic<std::int64_t> submits = 0, allocations = 0, objects = 0;
};

class context {
 public:
  context() = default;
  context(const context&) = delete;
  context& operator=(const context&) = delete;
  ~context() {
    if (device_ == nullptr) return;
    if (!lost_) f().DeviceWaitIdle(device_);
    if (timeline_ != VK_NULL_HANDLE) f().DestroySemaphore(device_, timeline_, nullptr);
    if (layout_ != VK_NULL_HANDLE) f().DestroyPipelineLayout(device_, layout_, nullptr);
    if (owned_) f().DestroyDevice(device_, nullptr);
  }

  /// Opens a device. @error no_device, unknown_device with the devices seen, missing_feature with the features' names, invalid_argument for a negative timeout
  static result<std::shared_ptr<context>> open(const vulkan::options& o) {
    if (auto r = check_timeout(o.timeout_seconds); !r) return r.error();
    auto i = instance::open(o.diagnose);
    if (!i) return i.error();
    auto chosen = choose((*i)->devices(), o.name);
    if (!chosen) return chosen.error();
    auto c = std::make_shared<context>();
    c->instance_ = *i;
    c->options = o;
    c->physical_ = (*i)->devices()[*chosen];
    c->index_ = int(*chosen);
    if (auto r = c->create(); !r) return r.error();
    if (auto r = c->prepare(); !r) return r.error();
    return c;
  }
  /// Uses objects of an application. @error no_device where the physical device is not among the instance's; missing_feature
  static result<std::shared_ptr<context>> adopt(const native_handles& h, const vulkan::options& o) {
    if (auto r = check_timeout(o.timeout_seconds); !r) return r.error();
    auto i = instance::adopt(h.instance, h.get_instance_proc_addr);
    if (!i) return i.error();
    auto c = std::make_shared<context>();
    c->instance_ = *i;
    c->options = o;
    c->owned_ = false;
    if (!h.matrix_units) c->options.diagnose.no_matrix_units = true;
    const auto& all = (*i)->devices();
    for (std::size_t k = 0; k < all.size(); ++k)
      if (all[k].handle == h.physical_device) c->physical_ = all[k], c->index_ = int(k);
    if (c->physical_.handle == nullptr)
      return fail(errc::no_device, "the adopted physical device is not one of the instance's", "vulkan",
                  "adopt a physical device that the adopted instance enumerates");
    if (!c->physical_.missing.empty()) return lacks(c->physical_);
    c->device_ = h.device;
    c->queue_ = h.queue;
    c->physical_.family = h.queue_family;
    c->f().take_device(h.device);
    if (auto r = c->prepare(); !r) return r.error();
    return c;
  }

  /// Every call of the driver goes through this table.
  const functions& f() const { return owner_.check(), instance_->table(); }
  functions& f() { return owner_.check(), instance_->table(); }
  const thread_owner& owner() const { return owner_; }
  VkDevice handle() const { return device_; }
  VkPipelineLayout layout() const { return layout_; }
  const physical_device& physical() const { return physical_; }
  const message_log& messages() const { return instance_->log; }
  native_handles handles() const {
    return {f().GetInstanceProcAddr,          instance_->handle(), physical_.handle, device_, queue_, physical_.family,
            !options.diagnose.no_matrix_units};
  }
  device_info info() const { return describe(physical_, index_); }
  bool lost() const { return lost_; }
  /// Disables matrix units; reports show `why`. To be called after the device is opened and before kernels are recorded.
  void distrust(std::string why) { physical_.limits.distrusted = std::move(why); }

  /// Plans that are recorded after this have the variants whose names begin so (diagnostics::variant).
  void ask_for(std::string variant) { physical_.limits.switches.variant = std::move(variant); }

  /// Submits recorded commands; returns the timeline value that is reached when they are complete. @error device_lost, out_of_memory
  result<std::uint64_t> submit(VkCommandBuffer commands, int times = 1) {
    const std::lock_guard lock(mutex_);
    if (lost_) return failed(VK_ERROR_DEVICE_LOST, "submitting to a lost device");
    const auto fault = options.diagnose.fault;
    if (fault != injected_fault::none && counters.submits >= options.diagnose.fault_after) {
      if (fault == injected_fault::out_of_memory) return failed(VK_ERROR_OUT_OF_DEVICE_MEMORY, "submitting work (injected)");
      if (fault == injected_fault::device_lost) return struck(VK_ERROR_DEVICE_LOST, "submitting work (injected)");
    }
    const VkCommandBufferSubmitInfo buffer{VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO, nullptr, commands, 0};
    repeated_.assign(std::size_t(times), buffer);
    VkSemaphoreSubmitInfo signal{VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO, nullptr, timeline_, ++submitted_,
                                 VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,    0};
    const VkSubmitInfo2 info{VK_STRUCTURE_TYPE_SUBMIT_INFO_2, nullptr, 0, 0, nullptr, std::uint32_t(times), repeated_.data(), 1, &signal};
    if (const auto s = f().QueueSubmit2(queue_, 1, &info, VK_NULL_HANDLE); s != VK_SUCCESS) return dead(s, "submitting work");
    ++counters.submits;
    return submitted_;
  }
  /// Waits until the timeline has reached `value`. @error device_lost, timeout (after either, the device counts as lost)
  result<void> wait(std::uint64_t value) {
    if (lost_) return failed(VK_ERROR_DEVICE_LOST, "waiting for a lost device");
    if (options.diagnose.fault == injected_fault::hung && counters.submits > options.diagnose.fault_after)
      return struck(VK_TIMEOUT, "waiting for work (injected)");
    VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO, nullptr, 0, 1, &timeline_, &value};
    const auto s = f().WaitSemaphores(device_, &info, nanoseconds(options.timeout_seconds));
    if (s == VK_SUCCESS) return {};
    if (s != VK_TIMEOUT) return dead(s, "waiting for work");
    f().abandon();
    return dead(s, "work did not finish within " + std::to_string(options.timeout_seconds) + " s");
  }
  /// Binds memory to parts of a sparse buffer and waits until it is bound.
  result<void> bind(const VkSparseBufferMemoryBindInfo& what) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t value = ++submitted_;
    VkTimelineSemaphoreSubmitInfo times{VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO, nullptr, 0, nullptr, 1, &value};
    VkBindSparseInfo info{VK_STRUCTURE_TYPE_BIND_SPARSE_INFO, &times, 0, nullptr, 1, &what, 0, nullptr, 0, nullptr, 1, &timeline_};
    if (const auto s = f().QueueBindSparse(queue_, 1, &info, VK_NULL_HANDLE); s != VK_SUCCESS) return dead(s, "binding sparse memory");
    return wait(value);
  }

  /// Counts an object that was made, and names it for debuggers and validation messages if the debug extension is enabled.
  template <class Handle> void name(VkObjectType type, Handle handle, const std::string& text) {
    ++counters.objects;
    if (f().SetDebugUtilsObjectNameEXT == nullptr || !owned_) return;
    const VkDebugUtilsObjectNameInfoEXT info{VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT, nullptr, type, std::uint64_t(handle),
                                             text.c_str()};
    f().SetDebugUtilsObjectNameEXT(device_, &info);
  }
  /// Starts a labelled range of commands, which debuggers show if the debug extension is enabled.
  void begin_label(VkCommandBuffer b, const std::string& text) const {
    if (f().CmdBeginDebugUtilsLabelEXT == nullptr || !owned_) return;
    const VkDebugUtilsLabelEXT info{VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT, nullptr, text.c_str(), {}};
    f().CmdBeginDebugUtilsLabelEXT(b, &info);
  }
  void end_label(VkCommandBuffer b) const {
    if (f().CmdEndDebugUtilsLabelEXT != nullptr && owned_) f().CmdEndDebugUtilsLabelEXT(b);
  }

  context_counters counters;
  vulkan::options options;

 private:
  thread_owner owner_;
  std::shared_ptr<instance> instance_;
  physical_device physical_;
  int index_ = 0;
  VkDevice device_ = nullptr;
  VkQueue queue_ = nullptr;
  VkSemaphore timeline_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  std::uint64_t submitted_ = 0;
  std::vector<VkCommandBufferSubmitInfo> repeated_;  // of one submission
  std::mutex mutex_;
  bool owned_ = true;
  std::atomic<bool> lost_ = false;

  failure dead(VkResult s, std::string asked) {
    if (s == VK_ERROR_DEVICE_LOST || s == VK_TIMEOUT) lost_ = true;
    return failed(s, std::move(asked), physical_.name);
  }
  /// Reports an injected fault. The device itself works and may still use memory that callers free after an error, so this waits for it first.
  failure struck(VkResult s, std::string asked) {
    f().DeviceWaitIdle(device_);
    return dead(s, std::move(asked));
  }

  result<void> create() {
    const float priority = 1;
    VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, nullptr, 0, physical_.family, 1, &priority};
    VkPhysicalDeviceFeatures2 base{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, nullptr, {}};
    base.features.shaderInt64 = 1;
    base.features.sparseBinding = physical_.sparse ? 1 : 0;
    VkPhysicalDeviceVulkan11Features v11{};
    v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
    v11.storageBuffer16BitAccess = 1;
    VkPhysicalDeviceVulkan12Features v12{};
    v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    v12.storageBuffer8BitAccess = v12.bufferDeviceAddress = v12.scalarBlockLayout = v12.timelineSemaphore = v12.vulkanMemoryModel =
        v12.vulkanMemoryModelDeviceScope = 1;
    v12.shaderFloat16 = physical_.limits.float16 ? 1 : 0;
    VkPhysicalDeviceVulkan13Features v13{};
    v13.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES;
    v13.synchronization2 = v13.subgroupSizeControl = v13.computeFullSubgroups = v13.maintenance4 = 1;
    base.pNext = &v11;
    v11.pNext = &v12;
    v12.pNext = &v13;
    void** end = &v13.pNext;
    std::vector<const char*> extensions;
    const auto append = [&](auto& s, const char* extension) {
      *end = &s;
      end = &s.next;
      extensions.push_back(extension);
    };
    cooperative_matrix_features matrix;
    matrix.cooperative_matrix = 1;
    if (physical_.has_matrix) append(matrix, "VK_KHR_cooperative_matrix");
    bfloat16_features bfloat;
    bfloat.bfloat16 = bfloat.cooperative_matrix = 1;
    if (physical_.has_bfloat16) append(bfloat, "VK_KHR_shader_bfloat16");
    cooperative_matrix2_features matrix2;
    matrix2.workgroup_scope = matrix2.flexible_dimensions = matrix2.reductions = matrix2.conversions = matrix2.per_element =
        matrix2.tensor_addressing = 1;
    if (physical_.has_matrix2) append(matrix2, "VK_NV_cooperative_matrix2");
    for (const auto& name : device_query::extensions(f(), physical_.handle))
      if (name == "VK_KHR_portability_subset") extensions.push_back("VK_KHR_portability_subset");
    const VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                  &base,
                                  0,
                                  1,
                                  &queue,
                                  0,
                                  nullptr,
                                  std::uint32_t(extensions.size()),
                                  extensions.data(),
                                  nullptr};
    if (const auto s = f().CreateDevice(physical_.handle, &info, nullptr, &device_); s != VK_SUCCESS) {
      device_ = nullptr;
      return failed(s, "opening " + physical_.name);
    }
    f().take_device(device_);
    f().GetDeviceQueue(device_, physical_.family, 0, &queue_);
    return {};
  }
  result<void> prepare() {
    auto& switches = physical_.limits.switches;
    switches.no_matrix_units = options.diagnose.no_matrix_units;
    switches.no_f16_matrices = options.diagnose.no_f16_matrices;
    switches.split_k = options.diagnose.split_k;
    switches.oscillation_threshold = options.diagnose.oscillation_threshold;
    switches.no_auto_wide = options.diagnose.no_auto_wide;
    switches.force_wide = options.diagnose.force_wide;
    switches.launch_size = options.diagnose.launch_size;
    switches.variant = options.diagnose.variant;
    if (const auto n = switches.launch_size; n != -1 && (n < 1 || n > std::int32_t(physical_.limits.invocations)))
      return fail(errc::invalid_argument, "workgroups of " + std::to_string(n) + " invocations", "vulkan",
                  physical_.name + " takes 1 to " + std::to_string(physical_.limits.invocations));
    // An application may run other work at the same time, on other queues.
    if (!owned_) physical_.limits.step_workgroups = 0;
    if (options.diagnose.step_workgroups >= 0) physical_.limits.step_workgroups = std::uint32_t(options.diagnose.step_workgroups);
    switches.no_workgroup_matrices = options.diagnose.no_workgroup_matrices;
    if (switches.no_workgroup_matrices || switches.no_matrix_units) physical_.limits.matrix2 = false;
    VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO, nullptr, VK_SEMAPHORE_TYPE_TIMELINE, 0};
    const VkSemaphoreCreateInfo semaphore{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type, 0};
    if (const auto s = f().CreateSemaphore(device_, &semaphore, nullptr, &timeline_); s != VK_SUCCESS)
      return failed(s, "creating a semaphore");
    name(VK_OBJECT_TYPE_SEMAPHORE, timeline_, "isotope timeline");
    const VkPushConstantRange push{VK_SHADER_STAGE_COMPUTE_BIT, 0, 128};
    const VkPipelineLayoutCreateInfo layout{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, nullptr, 0, 0, nullptr, 1, &push};
    if (const auto s = f().CreatePipelineLayout(device_, &layout, nullptr, &layout_); s != VK_SUCCESS)
      return failed(s, "creating a pipeline layout");
    name(VK_OBJECT_TYPE_PIPELINE_LAYOUT, layout_, "isotope layout");
    return {};
  }
};

}  // namespace isotope::vulkan
