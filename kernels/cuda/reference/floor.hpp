#pragma once
/// The largest whole number that is not larger, as an instruction of fused bodies. Bodies that hold it are generated, not interpreted.
#include <isotope/kernels/cuda/body/emitted_formulas.hpp>
#include <isotope/kernels/cuda/body/instructions.hpp>
#include <isotope/op/floor.hpp>

namespace isotope::cuda::ptx::formulas {
#define FORMULA constexpr
#include <isotope/kernels/vulkan/body/floor.glsl>
#undef FORMULA
}  // namespace isotope::cuda::ptx::formulas

namespace isotope::cuda {

template <GpuPrecision P> struct kernel<op::floor, P, kernels::reference> : emitted_instruction {
  static constexpr ptx::number formula(const ptx::number& x, const ptx::number&, const ptx::number&, const ptx::number&) {
    return ptx::formulas::largest_whole(x);
  }
};

}  // namespace isotope::cuda
