#pragma once
/// The fused bodies that products finish without the interpreter of bodies: nothing, y + bias, GELU of y + bias, and y + bias + residual.
///
/// The interpreter reads a cell of sums back from L2, a row and an instruction at a time, and for every row it looks up what each instruction reads.
#include <isotope/kernels/cpu/native/add.hpp>
#include <isotope/kernels/cpu/native/gelu.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

enum class body_kind { none, bias, gelu_erf, gelu_tanh, residual, other };

/// Which of these bodies a launch has, and its operands, all of which have the program's format.
///
/// @tparam P  the program's precision: the kernels of other ones are none of these
template <class P> struct known_body {
  using number = typename P::storage;
  body_kind kind = body_kind::other;
  const number *bias = nullptr, *residual = nullptr;  // of a column; of an element of the result

  /// @param N  columns of the product
  known_body(const launch& l, std::int64_t N) {
    const auto& b = l.body;
    if (b.empty()) kind = body_kind::none;
    if (b.empty() || b.size() > 2 || !is<op::add>(b[0])) return;
    const view* row = other_operand(l, b[0], isotope::gemm_result);
    if (row == nullptr || !is_row(*row, N)) return;
    bias = row->as<const number>();
    if (b.size() == 1) {
      if (b[0].store == 0) kind = body_kind::bias;
    } else if (b[0].store < 0 && b[1].store == 0) {
      if (b[1].arg[0] == max_inputs && is<op::gelu_erf>(b[1])) kind = body_kind::gelu_erf;
      if (b[1].arg[0] == max_inputs && is<op::gelu_tanh>(b[1])) kind = body_kind::gelu_tanh;
      const view* x = other_operand(l, b[1], max_inputs);
      if (!is<op::add>(b[1]) || x == nullptr || x->dims != l.out[0].dims || x->strides != dense_strides(x->dims)) return;
      residual = x->as<const number>();
      kind = body_kind::residual;
    }
  }

 private:
  template <class Op> static bool is(const instruction& i) { return i.tile == &kernel<Op, P, kernels::native>::tile && i.type == P::type; }
  /// Returns the operand that is added to value `one`; null if there is none of this format.
  static const view* other_operand(const launch& l, const instruction& i, int one) {
    const int other = i.arg[0] == one ? i.arg[1] : i.arg[1] == one ? i.arg[0] : -1;
    const view* const x = other >= 0 && other < max_inputs ? &l.in[std::size_t(other)] : nullptr;
    return x != nullptr && x->type == P::type ? x : nullptr;
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
