#pragma once
/// Lists which ops have a specification, and which gradient kernels are covered by the op whose gradient they compute.
#include <boost/mp11/algorithm.hpp>
#include <boost/mp11/list.hpp>

#include "../op/all.hpp"

namespace isotope::conform {

// clang-format off
using specified_ops = boost::mp11::mp_list<
    op::accumulate, op::adamw, op::add, op::argmax, op::attention, op::cast, op::categorical, op::clip_norm, op::clip_value, op::concat,
    op::copy, op::cross_entropy, op::cumsum, op::div, op::dropout, op::embedding, op::equal, op::exp, op::expand, op::fft, op::fill, op::gelu_erf,
    op::gelu_tanh, op::global_norm, op::layer_norm, op::less, op::irfft, op::log, op::log_softmax, op::matmul, op::max, op::mean, op::min, op::momentum,
    op::mul, op::muon, op::narrow, op::pad, op::permute, op::prod, op::relu, op::reshape, op::rfft, op::rms_norm, op::rope, op::scale, op::select, op::sgd, op::shift,
    op::sigmoid, op::silu, op::softmax, op::split, op::sqrt, op::square, op::sub, op::sum, op::tanh, op::top_k>;

/// A gradient kernel and the op whose gradient cases run it.
template <class Kernel, class Op> struct gradient_kernel {
  using kernel = Kernel;
  using of = Op;
};
using gradient_kernels = boost::mp11::mp_list<
    gradient_kernel<op::attention_grad, op::attention>,
    gradient_kernel<op::cross_entropy_grad, op::cross_entropy>,
    gradient_kernel<op::div_grad, op::div>,
    gradient_kernel<op::embedding_grad, op::embedding>,
    gradient_kernel<op::gelu_erf_grad, op::gelu_erf>,
    gradient_kernel<op::gelu_tanh_grad, op::gelu_tanh>,
    gradient_kernel<op::layer_norm_grad, op::layer_norm>,
    gradient_kernel<op::log_softmax_grad, op::log_softmax>,
    gradient_kernel<op::prod_grad, op::prod>,
    gradient_kernel<op::relu_grad, op::relu>,
    gradient_kernel<op::rms_norm_grad, op::rms_norm>,
    gradient_kernel<op::sigmoid_grad, op::sigmoid>,
    gradient_kernel<op::silu_grad, op::silu>,
    gradient_kernel<op::softmax_grad, op::softmax>,
    gradient_kernel<op::sqrt_grad, op::sqrt>,
    gradient_kernel<op::tanh_grad, op::tanh>>;
// clang-format on

namespace op_list_detail {
template <class G> using kernel_of = typename G::kernel;
}
/// Whether Op has its own specification, is the gradient of an op that has one, or is the step in which every element-wise op runs.
template <class Op>
concept Specified = boost::mp11::mp_contains<specified_ops, Op>::value || std::is_same_v<Op, op::elementwise> ||
                    boost::mp11::mp_contains<boost::mp11::mp_transform<op_list_detail::kernel_of, gradient_kernels>, Op>::value;

}  // namespace isotope::conform
