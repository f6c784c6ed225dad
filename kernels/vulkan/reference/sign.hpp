#pragma once
/// The sign as an instruction of fused bodies. Bodies that hold it are generated, not interpreted.
#include <isotope/kernels/vulkan/body/emitted_formulas.hpp>
#include <isotope/kernels/vulkan/body/instructions.hpp>
#include <isotope/op/sign.hpp>

namespace isotope::vulkan::spirv::formulas {
#define FORMULA constexpr
#include <isotope/kernels/vulkan/body/sign.glsl>
#undef FORMULA
}  // namespace isotope::vulkan::spirv::formulas

namespace isotope::vulkan {

template <ShaderPrecision P> struct kernel<op::sign, P, kernels::reference> : emitted_instruction {
  static constexpr spirv::number formula(const spirv::number& x, const spirv::number&, const spirv::number&, const spirv::number&) {
    return spirv::formulas::sign_or_itself(x);
  }
};

}  // namespace isotope::vulkan
