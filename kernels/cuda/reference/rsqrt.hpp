#pragma once
/// The inverse square root as an instruction of fused bodies. Bodies that hold it are generated, not interpreted.
#include <isotope/kernels/cuda/body/emitted_formulas.hpp>
#include <isotope/kernels/cuda/body/instructions.hpp>
#include <isotope/op/rsqrt.hpp>

namespace isotope::cuda::ptx::formulas {
#define FORMULA constexpr
#include <isotope/kernels/vulkan/body/rsqrt.glsl>
#undef FORMULA
}  // namespace isotope::cuda::ptx::formulas

namespace isotope::cuda {

template <GpuPrecision P> struct kernel<op::rsqrt, P, kernels::reference> : emitted_instruction {
  static constexpr ptx::number formula(const ptx::number& x, const ptx::number&, const ptx::number&, const ptx::number&) {
    return ptx::formulas::inverse_root(x);
  }
};

}  // namespace isotope::cuda
