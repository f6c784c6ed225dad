/// An application creates a device without isotope; isotope trains on it and leaves it usable.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <isotope/backend/vulkan.hpp>
#include <isotope/isotope.hpp>

#include <string>
#include <vector>

#include "device.hpp"

namespace isotope::vulkan {
namespace adopted_device_test {

/// A Vulkan application that does not use isotope. It requests the documented features and records messages of the validation layer.
class application {
 public:
  std::vector<std::string> heard;

  ~application() {
    if (device_ != nullptr) call<PFN_vkDestroyDevice>("vkDestroyDevice")(device_, nullptr);
    if (messenger_ != VK_NULL_HANDLE)
      call<PFN_vkDestroyDebugUtilsMessengerEXT>("vkDestroyDebugUtilsMessengerEXT")(instance_, messenger_, nullptr);
    if (instance_ != nullptr) call<PFN_vkDestroyInstance>("vkDestroyInstance")(instance_, nullptr);
    if (loader_ != nullptr) dlclose(loader_);
  }
  /// Returns false if there is no loader, no validation layer or no device.
  bool open() {
    loader_ = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    if (loader_ == nullptr) return false;
    get_ = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(loader_, "vkGetInstanceProcAddr"));
    const VkDebugUtilsMessengerCreateInfoEXT listen{
        VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
        nullptr,
        0,
        VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
        VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT,
        &application::hear,
        &heard};
    const VkApplicationInfo app{VK_STRUCTURE_TYPE_APPLICATION_INFO, nullptr, "an application", 1, nullptr, 0, VK_API_VERSION_1_3};
    const char* const layer = "VK_LAYER_KHRONOS_validation";
    const char* const extension = "VK_EXT_debug_utils";
    const VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, &listen, 0, &app, 1, &layer, 1, &extension};
    if (call<PFN_vkCreateInstance>("vkCreateInstance")(&info, nullptr, &instance_) != VK_SUCCESS) return false;
    call<PFN_vkCreateDebugUtilsMessengerEXT>("vkCreateDebugUtilsMessengerEXT")(instance_, &listen, nullptr, &messenger_);
    std::uint32_t one = 1;
    call<PFN_vkEnumeratePhysicalDevices>("vkEnumeratePhysicalDevices")(instance_, &one, &physical_);
    return one == 1 && make_device();
  }
  native_handles handles() const {
    VkQueue queue = nullptr;
    call<PFN_vkGetDeviceQueue>("vkGetDeviceQueue")(device_, family_, 0, &queue);
    return {get_, instance_, physical_, device_, queue, family_};
  }
  /// The application's own use of its device.
  VkResult makes_a_fence() const {
    const VkFenceCreateInfo info{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO, nullptr, 0};
    VkFence fence = VK_NULL_HANDLE;
    const VkResult r = call<PFN_vkCreateFence>("vkCreateFence")(device_, &info, nullptr, &fence);
    call<PFN_vkDestroyFence>("vkDestroyFence")(device_, fence, nullptr);
    return r;
  }

 private:
  void* loader_ = nullptr;
  PFN_vkGetInstanceProcAddr get_ = nullptr;
  VkInstance instance_ = nullptr;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  VkPhysicalDevice physical_ = nullptr;
  VkDevice device_ = nullptr;
  std::uint32_t family_ = 0;

  template <class F> F call(const char* name) const { return reinterpret_cast<F>(get_(instance_, name)); }
  static VKAPI_ATTR VkBool32 VKAPI_CALL hear(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                                             const VkDebugUtilsMessengerCallbackDataEXT* data, void* to) {
    static_cast<std::vector<std::string>*>(to)->emplace_back(data->pMessage);
    return VK_FALSE;
  }
  bool make_device() {
    const auto families = call<PFN_vkGetPhysicalDeviceQueueFamilyProperties>("vkGetPhysicalDeviceQueueFamilyProperties");
    std::uint32_t n = 0;
    families(physical_, &n, nullptr);
    std::vector<VkQueueFamilyProperties> all(n);
    families(physical_, &n, all.data());
    while (family_ < n && (all[family_].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) ++family_;
    if (family_ == n) return false;
    // Enables all features of Vulkan 1.3 that the device has, and no extension.
    VkPhysicalDeviceVulkan13Features v13{};
    v13.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES;
    VkPhysicalDeviceVulkan12Features v12{};
    v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    v12.pNext = &v13;
    VkPhysicalDeviceVulkan11Features v11{};
    v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
    v11.pNext = &v12;
    VkPhysicalDeviceFeatures2 features{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &v11, {}};
    call<PFN_vkGetPhysicalDeviceFeatures2>("vkGetPhysicalDeviceFeatures2")(physical_, &features);
    features.features.robustBufferAccess = 0;  // the validation layer warns that it is slow
    const float priority = 1;
    const VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, nullptr, 0, family_, 1, &priority};
    const VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, &features, 0, 1, &queue, 0, nullptr, 0, nullptr, nullptr};
    return call<PFN_vkCreateDevice>("vkCreateDevice")(physical_, &info, nullptr, &device_) == VK_SUCCESS;
  }
};

TEST(vulkan_adopted_device, of_an_application_trains_as_the_librarys_own_does_and_outlives_the_session) {
  using f32 = target<backend::vulkan, precision::f32>;
  vulkan_test::test_device();  // skips the test if there is no device
  const auto losses = [](const device<f32>& d) {
    auto plan = plan_training<f32>(model::gpt_loss_of{model::gpt{2, 2, 16, 20, 8, 0.1}, 2, 8}, {});
    EXPECT_TRUE(plan.ok());
    auto s = d.load(*std::move(plan));
    EXPECT_TRUE(s.ok()) << (s ? std::string() : s.error().line());
    s->initialize(3);
    const std::vector<std::int32_t> tokens(16, 3), targets(16, 5);
    const batch b{tokens, targets};
    std::vector<double> r;
    for (int i = 1; i <= 3; ++i) {
      step_scalars x;
      x.optimizer_step = i;
      x.learning_rate = 0.01f;
      r.push_back(s->step(b, x).loss);
    }
    EXPECT_TRUE(s->status().ok());
    return r;
  };
  vulkan::options without;
  without.diagnose.no_matrix_units = true;
  const auto own = losses(*isotope_test::there(device<f32>::open(without)));
  application a;
  ASSERT_TRUE(a.open());
  {
    auto d = device<f32>::adopt(a.handles());
    ASSERT_TRUE(d.ok()) << d.error().line();
    EXPECT_EQ(losses(*d), own);
    EXPECT_LT(own.back(), own.front());
  }
  EXPECT_EQ(a.makes_a_fence(), VK_SUCCESS);
  for (const auto& text : a.heard) EXPECT_TRUE(vulkan_test::allowed(text)) << text;
}

}  // namespace adopted_device_test
}  // namespace isotope::vulkan
