#pragma once
// One step of a chain whose formats are all f32, on several rows of four values.
#include "gemm/epilogue.cuh"

namespace isotope::cuda::gpu {

/// `o` holds the operand's values.
template <int Rows> __device__ inline void chain_values(const chain_step& s, float (&x)[Rows][4], const float (&o)[Rows][4]) {
  const bool first = s.operand_first != 0;
  const auto each = [&](auto result) {
#pragma unroll
    for (int i = 0; i < Rows; ++i)
#pragma unroll
      for (int q = 0; q < 4; ++q) x[i][q] = result(x[i][q], o[i][q]);
  };
  switch (s.code) {
    case 0: return each([](float v, float w) { return plus(v, w); });
    case 2: return each([](float v, float w) { return times(v, w); });
    case 4: return each([&](float v, float) { return times(s.constant, v); });
    case 18: return each([](float v, float) { return result_of(18u, v, 0.0f, 0.0f, 0.0f); });
    case 19: return each([&](float v, float w) { return result_of(19u, first ? w : v, first ? v : w, 0.0f, 0.0f); });
    case 22: return each([](float v, float) { return result_of(22u, v, 0.0f, 0.0f, 0.0f); });
    case 24: return each([](float v, float) { return result_of(24u, v, 0.0f, 0.0f, 0.0f); });
    case 23: return each([&](float v, float w) { return result_of(23u, first ? w : v, first ? v : w, 0.0f, 0.0f); });
    default: return;
  }
}

}  // namespace isotope::cuda::gpu
