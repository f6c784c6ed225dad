#pragma once
/// The largest tensor that kernels can index, and checks of it for plans and for launches without a plan.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "../../core/error.hpp"
#include "../../plan/diagnose.hpp"
#include "launch.hpp"

namespace isotope::vulkan {

inline constexpr std::int64_t tensor_bytes = std::int64_t(1) << 32;  // shaders index one tensor with 32 bits

/// Whether shaders can index a dense tensor. @error over_budget, with the message that refuses a plan
inline result<void> indexable(std::string_view op, const shape& dims, dtype type) {
  const std::int64_t bytes = dims.count() * size_of(type);
  if (bytes <= tensor_bytes) return {};
  return diagnosed(errc::over_budget, std::string(beyond_tensor_limit(op, dims, bytes, "vulkan", tensor_bytes).view()));
}
/// Whether shaders can index the tensors of a launch that was made without a plan; kernels do not check it. Addresses are not read, so it can be called
/// before memory is allocated. @error over_budget, with the message that refuses a plan
inline result<void> indexable(std::string_view op, std::span<const view> in, std::span<const view> out) {
  for (const auto& all : {in, out})
    for (const view& v : all)
      if (v.bytes > tensor_bytes)
        return diagnosed(errc::over_budget, std::string(beyond_tensor_limit(op, v.dims, v.bytes, "vulkan", tensor_bytes).view()));
  return {};
}

}  // namespace isotope::vulkan
