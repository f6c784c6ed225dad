#pragma once
/// Powers as an instruction of fused bodies. Bodies that hold it are generated, not interpreted.
#include <isotope/kernels/cuda/body/emitted_formulas.hpp>
#include <isotope/kernels/cuda/body/instructions.hpp>
#include <isotope/op/pow.hpp>

namespace isotope::cuda::ptx::formulas {
#define FORMULA constexpr
#include <isotope/kernels/vulkan/body/pow.glsl>
#undef FORMULA
}  // namespace isotope::cuda::ptx::formulas

namespace isotope::cuda {

template <GpuPrecision P> struct kernel<op::pow, P, kernels::reference> : emitted_instruction {
  static constexpr ptx::number formula(const ptx::number& a, const ptx::number& b, const ptx::number&, const ptx::number&) {
    return ptx::formulas::pow_accurate(a, b);
  }
};

}  // namespace isotope::cuda
