#pragma once
/// The larger and the smaller of two numbers as instructions of fused bodies. Bodies that hold it are generated, not interpreted.
#include <isotope/kernels/vulkan/body/emitted_formulas.hpp>
#include <isotope/kernels/vulkan/body/instructions.hpp>
#include <isotope/op/maximum.hpp>

namespace isotope::vulkan::spirv::formulas {
#define FORMULA constexpr
#include <isotope/kernels/vulkan/body/maximum.glsl>
#undef FORMULA
}  // namespace isotope::vulkan::spirv::formulas

namespace isotope::vulkan {

template <ShaderPrecision P> struct kernel<op::maximum, P, kernels::reference> : emitted_instruction {
  static constexpr spirv::number formula(const spirv::number& a, const spirv::number& b, const spirv::number&, const spirv::number&) {
    return spirv::formulas::larger_of(a, b);
  }
};
template <ShaderPrecision P> struct kernel<op::minimum, P, kernels::reference> : emitted_instruction {
  static constexpr spirv::number formula(const spirv::number& a, const spirv::number& b, const spirv::number&, const spirv::number&) {
    return spirv::formulas::smaller_of(a, b);
  }
};

}  // namespace isotope::vulkan
