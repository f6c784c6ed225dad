#pragma once
/// The larger and the smaller of two numbers as instructions of fused bodies. Bodies that hold it are generated, not interpreted.
#include <isotope/kernels/cuda/body/emitted_formulas.hpp>
#include <isotope/kernels/cuda/body/instructions.hpp>
#include <isotope/op/maximum.hpp>

namespace isotope::cuda::ptx::formulas {
#define FORMULA constexpr
#include <isotope/kernels/vulkan/body/maximum.glsl>
#undef FORMULA
}  // namespace isotope::cuda::ptx::formulas

namespace isotope::cuda {

template <GpuPrecision P> struct kernel<op::maximum, P, kernels::reference> : emitted_instruction {
  static constexpr ptx::number formula(const ptx::number& a, const ptx::number& b, const ptx::number&, const ptx::number&) {
    return ptx::formulas::larger_of(a, b);
  }
};
template <GpuPrecision P> struct kernel<op::minimum, P, kernels::reference> : emitted_instruction {
  static constexpr ptx::number formula(const ptx::number& a, const ptx::number& b, const ptx::number&, const ptx::number&) {
    return ptx::formulas::smaller_of(a, b);
  }
};

}  // namespace isotope::cuda
