#pragma once
/// The fused bodies that products of f32 by panels finish register tile by register tile, and how.
///
/// Bound by bytes of L1, with GELU by its flops. What the next register tile adds and overwrites is fetched while one is finished, as results seldom fit L2: with a
/// residual, in 0.4 of the time.
#include <isotope/kernels/cpu/native/gemm/known_body.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// What happens to sums of f32. The bits are those of the instructions one after another.
///
/// @tparam P  the program's precision; in bf16, bodies are none of these, but for the empty one
template <class P> class panel_body {
 public:
  /// Finishes y[i N + j] for i < rows and j < width, whole vectors, from sums[i ld + j].
  ///
  /// @param bias      of these columns
  /// @param residual  at the place of y
  /// @param ahead     floats from here to the place that is finished next
  using finisher = void (*)(const float* sums, std::int64_t ld, std::int64_t rows, std::int64_t width, const float* bias,
                            const float* residual, float* y, std::int64_t N, std::int64_t ahead);

  panel_body(const launch& l, std::int64_t N) : end_(l.out[0].dims.count()) {
    const auto c = l.constants<op::matmul>();
    const view& y = l.out[0];
    if (l.out.size() != 1 || l.accumulate != 0 || N % lanes != 0 || y.type != dtype::f32 || c.format.type() != dtype::f32) return;
    if (c.operands != 2 || c.alpha != 1) return;
    if (l.body.empty()) {
      finish_ = &finish<kind::none>;
    } else if constexpr (std::same_as<P, precision::f32>) {
      const known_body<P> body(l, N);
      constexpr finisher of_kind[] = {&finish<kind::none>,      &finish<kind::bias>,     &finish<kind::gelu_erf>,
                                      &finish<kind::gelu_tanh>, &finish<kind::residual>, nullptr};
      finish_ = of_kind[int(body.kind)];
      bias_ = body.bias, residual_ = body.residual;
    }
  }

  /// Whether the body is one of these.
  bool known() const { return finish_ != nullptr; }
  /// As finisher, for a product N columns wide.
  ///
  /// @param first  of the element y[0] in the result
  /// @param n      its column
  void run(const float* sums, std::int64_t ld, std::int64_t rows, std::int64_t width, std::int64_t first, std::int64_t n, float* y,
           std::int64_t N) const {
    const std::int64_t ahead = first + rows * N < end_ ? rows * N : 0;
    finish_(sums, ld, rows, width, bias_ == nullptr ? nullptr : bias_ + n, residual_ == nullptr ? nullptr : residual_ + first, y + first, N,
            ahead);
  }

 private:
  using kind = body_kind;
  static constexpr std::int64_t line = 16;  // floats
  finisher finish_ = nullptr;
  const float *bias_ = nullptr, *residual_ = nullptr;
  std::int64_t end_;  // elements of the result

  template <kind Kind>
  static void finish(const float* sums, std::int64_t ld, std::int64_t rows, std::int64_t width, const float* bias, const float* residual,
                     float* y, std::int64_t N, std::int64_t ahead) {
    for (std::int64_t i = 0; i < rows; ++i, sums += ld, y += N) {
      for (std::int64_t j = 0; j < width; j += lanes) {
        if (j % line == 0) {
          __builtin_prefetch(y + ahead + j, 1);
          if constexpr (Kind == kind::residual) __builtin_prefetch(residual + i * N + ahead + j, 0, 2);
        }
        vector v = load(sums + j, whole_vector{});
        if constexpr (Kind != kind::none) v = v + load(bias + j, whole_vector{});
        if constexpr (Kind == kind::gelu_erf) v = lanewise::gelu_erf(v);
        if constexpr (Kind == kind::gelu_tanh) v = lanewise::gelu_tanh(v);
        if constexpr (Kind == kind::residual) v = v + load(residual + i * N + j, whole_vector{});
        store(y + j, v, whole_vector{});
      }
    }
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
