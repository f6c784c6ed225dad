#pragma once
/// The fused bodies that a product with packed weights in f32 finishes register tile by register tile, and how.
///
/// Bound by bytes of L1, with GELU by its flops. The interpreter of bodies reads a cell of sums back from L2, a row and an instruction at a time, and for
/// every row it looks up what each instruction reads.
#include <isotope/kernels/cpu/native/add.hpp>
#include <isotope/kernels/cpu/native/gelu.hpp>
#include <isotope/kernels/cpu/native/gemm/vector_panels.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// What happens to sums of f32: nothing, y + bias, GELU of y + bias, or y + bias + residual. The bits are those of the instructions one after another.
///
/// @tparam P  the program's precision; instructions of programs in bf16 have other kernels and are none of these
template <class P> class panel_body {
 public:
  /// Finishes y[i N + j] for i < rows and j < width, whole vectors, from sums[i ld + j].
  ///
  /// @param bias      of these columns
  /// @param residual  at the place of y
  using finisher = void (*)(const float* sums, std::int64_t ld, std::int64_t rows, std::int64_t width, const float* bias,
                            const float* residual, float* y, std::int64_t N);

  panel_body(const launch& l, std::int64_t N) {
    const auto c = l.constants<op::matmul>();
    const view& y = l.out[0];
    if (l.out.size() != 1 || l.accumulate != 0 || N % lanes != 0 || y.type != dtype::f32 || c.format.type() != dtype::f32) return;
    if (c.operands != 2 || c.alpha != 1) return;
    if (l.body.empty()) finish_ = &finish<kind::none>;
    else if constexpr (std::same_as<P, precision::f32>) take(l, N);
  }

  /// Whether the body is one of these.
  bool known() const { return finish_ != nullptr; }
  /// As finisher, for a product N columns wide.
  ///
  /// @param first  of the element y[0] in the result
  /// @param n      its column
  void run(const float* sums, std::int64_t ld, std::int64_t rows, std::int64_t width, std::int64_t first, std::int64_t n, float* y,
           std::int64_t N) const {
    finish_(sums, ld, rows, width, bias_ == nullptr ? nullptr : bias_ + n, residual_ == nullptr ? nullptr : residual_ + first, y + first,
            N);
  }

 private:
  enum class kind { none, bias, gelu_erf, gelu_tanh, residual };
  finisher finish_ = nullptr;
  const float *bias_ = nullptr, *residual_ = nullptr;

  void take(const launch& l, std::int64_t N) {
    const auto is = [](const instruction& i, tile_function of) { return i.tile == of && i.type == dtype::f32; };
    const auto& b = l.body;
    if (b.size() > 2 || !is(b[0], &kernel<op::add, P, kernels::native>::tile)) return;
    const view* row = other_operand(l, b[0], isotope::gemm_result);
    if (row == nullptr || row->type != dtype::f32 || !is_row(*row, N)) return;
    bias_ = row->as<const float>();
    if (b.size() == 1) {
      if (b[0].store == 0) finish_ = &finish<kind::bias>;
    } else if (b[0].store < 0 && b[1].store == 0) {
      if (b[1].arg[0] == max_inputs) {
        if (is(b[1], &kernel<op::gelu_erf, P, kernels::native>::tile)) finish_ = &finish<kind::gelu_erf>;
        if (is(b[1], &kernel<op::gelu_tanh, P, kernels::native>::tile)) finish_ = &finish<kind::gelu_tanh>;
      }
      const view* x = other_operand(l, b[1], max_inputs);
      if (!is(b[1], &kernel<op::add, P, kernels::native>::tile) || x == nullptr || x->type != dtype::f32) return;
      if (x->dims != l.out[0].dims || x->strides != dense_strides(x->dims)) return;
      residual_ = x->as<const float>();
      finish_ = &finish<kind::residual>;
    }
  }

  template <kind Kind>
  static void finish(const float* sums, std::int64_t ld, std::int64_t rows, std::int64_t width, const float* bias, const float* residual,
                     float* y, std::int64_t N) {
    for (std::int64_t i = 0; i < rows; ++i, sums += ld, y += N) {
      for (std::int64_t j = 0; j < width; j += lanes) {
        vector v = load(sums + j, whole_vector{});
        if constexpr (Kind != kind::none) v = v + load(bias + j, whole_vector{});
        if constexpr (Kind == kind::gelu_erf) v = lanewise::gelu_erf(v);
        if constexpr (Kind == kind::gelu_tanh) v = lanewise::gelu_tanh(v);
        if constexpr (Kind == kind::residual) v = v + load(residual + i * N + j, whole_vector{});
        store(y + j, v, whole_vector{});
      }
    }
  }
  /// Returns the operand that is added to value `one`; null if there is none.
  static const view* other_operand(const launch& l, const instruction& i, int one) {
    const int other = i.arg[0] == one ? i.arg[1] : i.arg[1] == one ? i.arg[0] : -1;
    return other >= 0 && other < max_inputs ? &l.in[std::size_t(other)] : nullptr;
  }
  static bool is_row(const view& x, std::int64_t N) {
    const auto last = std::size_t(x.dims.rank - 1);
    if (x.dims.rank < 1 || x.dims[-1] != N || x.strides[last] != 1) return false;
    for (std::size_t i = 0; i < last; ++i)
      if (x.dims.d[i] != 1 && x.strides[i] != 0) return false;
    return true;
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
