#pragma once
/// The error function as an instruction of fused bodies. Bodies that hold it are generated, not interpreted.
#include <isotope/kernels/vulkan/body/emitted_formulas.hpp>
#include <isotope/kernels/vulkan/body/instructions.hpp>
#include <isotope/op/erf.hpp>

namespace isotope::vulkan::spirv::formulas {
#define FORMULA constexpr
#include <isotope/kernels/vulkan/body/erf.glsl>
#undef FORMULA
}  // namespace isotope::vulkan::spirv::formulas

namespace isotope::vulkan {

template <ShaderPrecision P> struct kernel<op::erf, P, kernels::reference> : emitted_instruction {
  static constexpr spirv::number formula(const spirv::number& x, const spirv::number&, const spirv::number&, const spirv::number&) {
    return spirv::formulas::erf_accurate(x);
  }
};

}  // namespace isotope::vulkan
