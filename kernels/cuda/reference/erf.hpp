#pragma once
/// The error function as an instruction of fused bodies. Bodies that hold it are generated, not interpreted.
#include <isotope/kernels/cuda/body/emitted_formulas.hpp>
#include <isotope/kernels/cuda/body/instructions.hpp>
#include <isotope/op/erf.hpp>

namespace isotope::cuda::ptx::formulas {
#define FORMULA constexpr
#include <isotope/kernels/vulkan/body/erf.glsl>
#undef FORMULA
}  // namespace isotope::cuda::ptx::formulas

namespace isotope::cuda {

template <GpuPrecision P> struct kernel<op::erf, P, kernels::reference> : emitted_instruction {
  static constexpr ptx::number formula(const ptx::number& x, const ptx::number&, const ptx::number&, const ptx::number&) {
    return ptx::formulas::erf_accurate(x);
  }
};

}  // namespace isotope::cuda
