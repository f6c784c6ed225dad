#pragma once
/// The element-wise ops as instructions of fused bodies. device/formulas.cuh has their formulas, for the interpreter and the PTX emitter
/// alike; an instruction's number is its index in this list. An op from outside the library has no number, and
/// neither have erf, sin and others of it: they take part in emitted bodies by an emitted_instruction (launch.hpp), and in no interpreted
/// ones.
#include <array>
#include <boost/mp11/algorithm.hpp>
#include <boost/mp11/list.hpp>
#include <concepts>

#include <isotope/backend/cuda/launch.hpp>
#include <isotope/op/add.hpp>
#include <isotope/op/div.hpp>
#include <isotope/op/exp.hpp>
#include <isotope/op/gelu.hpp>
#include <isotope/op/log.hpp>
#include <isotope/op/mul.hpp>
#include <isotope/op/relu.hpp>
#include <isotope/op/scale.hpp>
#include <isotope/op/select.hpp>
#include <isotope/op/sigmoid.hpp>
#include <isotope/op/silu.hpp>
#include <isotope/op/sqrt.hpp>
#include <isotope/op/square.hpp>
#include <isotope/op/sub.hpp>
#include <isotope/op/tanh.hpp>

namespace isotope::cuda {

using instruction_ops = boost::mp11::mp_list<op::add, op::sub, op::mul, op::div, op::scale, op::shift, op::less, op::equal, op::select,
                                             op::exp, op::log, op::sqrt, op::sqrt_grad, op::square, op::tanh, op::tanh_grad, op::sigmoid,
                                             op::sigmoid_grad, op::relu, op::relu_grad, op::silu, op::silu_grad, op::gelu_tanh,
                                             op::gelu_tanh_grad, op::gelu_erf, op::gelu_erf_grad, op::div_grad>;

inline constexpr auto instructions = []<class... Op>(boost::mp11::mp_list<Op...>) {
  return std::array<const op_info*, sizeof...(Op)>{&info<Op>...};
}(instruction_ops{});
/// Returns the number of an instruction, or -1 for an op that is none.
constexpr int instruction_number(const op_info* op) {
  for (std::size_t i = 0; i < instructions.size(); ++i)
    if (instructions[i] == op) return int(i);
  return -1;
}
static_assert(instruction_number(&info<op::relu_grad>) == 19, "the numbers in formulas.glsl are those of this list");

/// Returns what result_of takes: the number, or that of the shorter form if there is one and the result has 16 bits.
constexpr std::uint32_t instruction_code(const op_info* op, dtype result) {
  const bool shorter = size_of(result) == 2 && (op == &info<op::gelu_tanh> || op == &info<op::gelu_tanh_grad> || op == &info<op::gelu_erf>);
  return std::uint32_t(instruction_number(op)) + (shorter ? 32u : 0u);
}
static_assert(instruction_code(&info<op::gelu_tanh_grad>, dtype::bf16) == 55);

template <class Op>
concept Instruction = boost::mp11::mp_contains<instruction_ops, Op>::value;
/// The precisions that device code computes in f32.
template <class P>
concept GpuPrecision = requires { requires P::accum_type == dtype::f32; };

/// Bodies of the element-wise kernels and epilogues of matmul may hold these ops.
template <Instruction Op, GpuPrecision P> struct kernel<Op, P, kernels::reference> {
  static constexpr int instruction = instruction_number(&info<Op>);
};
template <Instruction Op, GpuPrecision P> struct kernel<Op, P, kernels::portable> : kernel<Op, P, kernels::reference> {};

}  // namespace isotope::cuda
