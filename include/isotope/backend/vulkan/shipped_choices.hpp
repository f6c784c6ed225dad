#pragma once
/// Choices among variants of kernels that bench_variants measured on a device of that name. They serve where the user's file has no choice.
#include <array>
#include <span>

#include "../queue/variant_cache.hpp"

namespace isotope::vulkan {

inline std::span<const shipped_choices> shipped() { return {}; }

}  // namespace isotope::vulkan
