#pragma once
/// Sine and cosine as instructions of fused bodies. Bodies that hold it are generated, not interpreted.
#include <isotope/kernels/vulkan/body/emitted_formulas.hpp>
#include <isotope/kernels/vulkan/body/instructions.hpp>
#include <isotope/op/sine.hpp>

namespace isotope::vulkan::spirv::formulas {
#define FORMULA constexpr
#include <isotope/kernels/vulkan/body/sine.glsl>
#undef FORMULA
}  // namespace isotope::vulkan::spirv::formulas

namespace isotope::vulkan {

template <ShaderPrecision P> struct kernel<op::sin, P, kernels::reference> : emitted_instruction {
  static constexpr spirv::number formula(const spirv::number& x, const spirv::number&, const spirv::number&, const spirv::number&) {
    return spirv::formulas::sin_accurate(x);
  }
};
template <ShaderPrecision P> struct kernel<op::cos, P, kernels::reference> : emitted_instruction {
  static constexpr spirv::number formula(const spirv::number& x, const spirv::number&, const spirv::number&, const spirv::number&) {
    return spirv::formulas::cos_accurate(x);
  }
};

}  // namespace isotope::vulkan
