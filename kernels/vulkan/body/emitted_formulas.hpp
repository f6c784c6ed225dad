#pragma once
/// The formulas of formulas.glsl as functions that append instructions to a module.
#include <isotope/backend/vulkan/spirv/numbers.hpp>

namespace isotope::vulkan::spirv::formulas {

using code = std::uint32_t;
#define FORMULA constexpr
#include <isotope/kernels/vulkan/body/formulas.glsl>
#undef FORMULA

}  // namespace isotope::vulkan::spirv::formulas
