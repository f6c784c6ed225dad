#pragma once
/// The inverse square root as an instruction of fused bodies. Bodies that hold it are generated, not interpreted.
#include <isotope/kernels/vulkan/body/emitted_formulas.hpp>
#include <isotope/kernels/vulkan/body/instructions.hpp>
#include <isotope/op/rsqrt.hpp>

namespace isotope::vulkan::spirv::formulas {
#define FORMULA constexpr
#include <isotope/kernels/vulkan/body/rsqrt.glsl>
#undef FORMULA
}  // namespace isotope::vulkan::spirv::formulas

namespace isotope::vulkan {

template <ShaderPrecision P> struct kernel<op::rsqrt, P, kernels::reference> : emitted_instruction {
  static constexpr spirv::number formula(const spirv::number& x, const spirv::number&, const spirv::number&, const spirv::number&) {
    return spirv::formulas::inverse_root(x);
  }
};

}  // namespace isotope::vulkan
