#pragma once
/// The left operand of a product of a few rows, in f32 and contiguous along k: where it lies, if it lies so, or a copy. Bound by bytes.
#include <isotope/kernels/cpu/gemm/epilogue.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// A[m, k] of a batch is at data[m stride + k].
struct few_rows {
  const float* data;
  std::int64_t stride;

  /// @param room  M K floats
  few_rows(const launch& l, const portable::matmul_shape& s, std::int64_t batch, float* room) : data(room), stride(s.K) {
    portable::with_type(l.in[0], [&](const auto* x) {
      x += s.offset_a(batch);
      if constexpr (std::is_same_v<decltype(x), const float*>)
        if (s.a_k == 1) {
          data = x, stride = s.a_row;
          return;
        }
      for (std::int64_t m = 0; m < s.M; ++m)
        for (std::int64_t k = 0; k < s.K; ++k) room[m * s.K + k] = float(x[m * s.a_row + k * s.a_k]);
    });
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
