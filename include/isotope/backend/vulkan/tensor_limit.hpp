#pragma once
/// The largest tensor that kernels take, for plans and for launches that are made without one.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "../../core/error.hpp"
#include "../../plan/diagnose.hpp"
#include "launch.hpp"

namespace isotope::vulkan {

inline constexpr std::int64_t tensor_bytes = std::int64_t(1) << 32;  // shaders index one tensor with 32 bits

/// Whether shaders can index a dense tensor. @error over_budget, in the words that refuse a plan
inline result<void> indexable(std::string_view op, const shape& dims, dtype type) {
  const std::int64_t bytes = dims.count() * size_of(type);
  if (bytes <= tensor_bytes) return {};
  return diagnosed(errc::over_budget, std::string(beyond_tensor_limit(op, dims, bytes, "vulkan", tensor_bytes).view()));
}
/// Whether shaders can index the tensors of a launch that no plan has checked: kernels trust them. Addresses are not looked at, so the question can
/// be asked before memory is allocated. @error over_budget, in the words that refuse a plan
inline result<void> indexable(std::string_view op, std::span<const view> in, std::span<const view> out) {
  for (const auto& all : {in, out})
    for (const view& v : all)
      if (v.bytes > tensor_bytes)
        return diagnosed(errc::over_budget, std::string(beyond_tensor_limit(op, v.dims, v.bytes, "vulkan", tensor_bytes).view()));
  return {};
}

}  // namespace isotope::vulkan
