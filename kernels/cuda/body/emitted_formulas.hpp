#pragma once
/// The formulas of formulas.glsl as functions that add nodes to a graph of PTX instructions.
#include <isotope/backend/cuda/ptx/numbers.hpp>

namespace isotope::cuda::ptx::formulas {

using code = std::uint32_t;
#define FORMULA constexpr
#include <isotope/kernels/vulkan/body/formulas.glsl>
#undef FORMULA

}  // namespace isotope::cuda::ptx::formulas
