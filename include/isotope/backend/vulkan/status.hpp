#pragma once
/// Converts a VkResult to a failure.
#include <string>
#include <string_view>

#include "../../core/error.hpp"
#include "functions.hpp"

namespace isotope::vulkan {

inline std::string_view name_of(VkResult r) {
  switch (r) {
    case VK_SUCCESS: return "VK_SUCCESS";
    case VK_NOT_READY: return "VK_NOT_READY";
    case VK_TIMEOUT: return "VK_TIMEOUT";
    case VK_INCOMPLETE: return "VK_INCOMPLETE";
    case VK_ERROR_OUT_OF_HOST_MEMORY: return "VK_ERROR_OUT_OF_HOST_MEMORY";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY: return "VK_ERROR_OUT_OF_DEVICE_MEMORY";
    case VK_ERROR_INITIALIZATION_FAILED: return "VK_ERROR_INITIALIZATION_FAILED";
    case VK_ERROR_DEVICE_LOST: return "VK_ERROR_DEVICE_LOST";
    case VK_ERROR_MEMORY_MAP_FAILED: return "VK_ERROR_MEMORY_MAP_FAILED";
    case VK_ERROR_LAYER_NOT_PRESENT: return "VK_ERROR_LAYER_NOT_PRESENT";
    case VK_ERROR_EXTENSION_NOT_PRESENT: return "VK_ERROR_EXTENSION_NOT_PRESENT";
    case VK_ERROR_FEATURE_NOT_PRESENT: return "VK_ERROR_FEATURE_NOT_PRESENT";
    case VK_ERROR_INCOMPATIBLE_DRIVER: return "VK_ERROR_INCOMPATIBLE_DRIVER";
    case VK_ERROR_TOO_MANY_OBJECTS: return "VK_ERROR_TOO_MANY_OBJECTS";
    default: return "an unnamed VkResult";
  }
}

/// `asked` says what was tried, in the user's words.
inline failure failed(VkResult r, std::string asked, std::string where = "vulkan") {
  const std::string what = asked + ": " + std::string(name_of(r)) + " (" + std::to_string(int(r)) + ")";
  switch (r) {
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_TOO_MANY_OBJECTS:
      return fail(errc::out_of_memory, what, std::move(where), "use a smaller batch or model, recompute blocks, or another device");
    case VK_ERROR_DEVICE_LOST:
      return fail(errc::device_lost, what, std::move(where), "open the device again, or another one, and load the last checkpoint");
    case VK_TIMEOUT: return fail(errc::timeout, what, std::move(where), "another device, a smaller batch, or a longer timeout");
    case VK_ERROR_FEATURE_NOT_PRESENT:
    case VK_ERROR_EXTENSION_NOT_PRESENT: return fail(errc::missing_feature, what, std::move(where), "another device or -DBACKEND=cpu");
    default: return fail(errc::no_device, what, std::move(where), "check the driver with vulkaninfo, or use another device");
  }
}

}  // namespace isotope::vulkan
