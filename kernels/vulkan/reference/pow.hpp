#pragma once
/// Powers as an instruction of fused bodies. Bodies that hold it are generated, not interpreted.
#include <isotope/kernels/vulkan/body/emitted_formulas.hpp>
#include <isotope/kernels/vulkan/body/instructions.hpp>
#include <isotope/op/pow.hpp>

namespace isotope::vulkan::spirv::formulas {
#define FORMULA constexpr
#include <isotope/kernels/vulkan/body/pow.glsl>
#undef FORMULA
}  // namespace isotope::vulkan::spirv::formulas

namespace isotope::vulkan {

template <ShaderPrecision P> struct kernel<op::pow, P, kernels::reference> : emitted_instruction {
  static constexpr spirv::number formula(const spirv::number& a, const spirv::number& b, const spirv::number&, const spirv::number&) {
    return spirv::formulas::pow_accurate(a, b);
  }
};

}  // namespace isotope::vulkan
