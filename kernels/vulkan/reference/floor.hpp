#pragma once
/// The largest whole number that is not larger, as an instruction of fused bodies. Bodies that hold it are generated, not interpreted.
#include <isotope/kernels/vulkan/body/emitted_formulas.hpp>
#include <isotope/kernels/vulkan/body/instructions.hpp>
#include <isotope/op/floor.hpp>

namespace isotope::vulkan::spirv::formulas {
#define FORMULA constexpr
#include <isotope/kernels/vulkan/body/floor.glsl>
#undef FORMULA
}  // namespace isotope::vulkan::spirv::formulas

namespace isotope::vulkan {

template <ShaderPrecision P> struct kernel<op::floor, P, kernels::reference> : emitted_instruction {
  static constexpr spirv::number formula(const spirv::number& x, const spirv::number&, const spirv::number&, const spirv::number&) {
    return spirv::formulas::largest_whole(x);
  }
};

}  // namespace isotope::vulkan
