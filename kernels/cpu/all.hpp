#pragma once
/// The portable kernel set of the cpu backend: vector loops, its own gemm and threads, without any special instruction.
#include <boost/mp11/list.hpp>

#include <isotope/kernels/cpu/portable/add.hpp>
#include <isotope/kernels/cpu/portable/attention.hpp>
#include <isotope/kernels/cpu/portable/attention_grad.hpp>
#include <isotope/kernels/cpu/portable/cast.hpp>
#include <isotope/kernels/cpu/portable/copy.hpp>
#include <isotope/kernels/cpu/portable/cross_entropy.hpp>
#include <isotope/kernels/cpu/portable/cumsum.hpp>
#include <isotope/kernels/cpu/portable/div.hpp>
#include <isotope/kernels/cpu/portable/dropout.hpp>
#include <isotope/kernels/cpu/portable/elementwise.hpp>
#include <isotope/kernels/cpu/portable/embedding.hpp>
#include <isotope/kernels/cpu/portable/exp.hpp>
#include <isotope/kernels/cpu/portable/fft.hpp>
#include <isotope/kernels/cpu/portable/fill.hpp>
#include <isotope/kernels/cpu/portable/gelu.hpp>
#include <isotope/kernels/cpu/portable/layer_norm.hpp>
#include <isotope/kernels/cpu/portable/log.hpp>
#include <isotope/kernels/cpu/portable/matmul.hpp>
#include <isotope/kernels/cpu/portable/mul.hpp>
#include <isotope/kernels/cpu/portable/muon.hpp>
#include <isotope/kernels/cpu/portable/prod.hpp>
#include <isotope/kernels/cpu/portable/relu.hpp>
#include <isotope/kernels/cpu/portable/rms_norm.hpp>
#include <isotope/kernels/cpu/portable/rope.hpp>
#include <isotope/kernels/cpu/portable/scale.hpp>
#include <isotope/kernels/cpu/portable/select.hpp>
#include <isotope/kernels/cpu/portable/sigmoid.hpp>
#include <isotope/kernels/cpu/portable/silu.hpp>
#include <isotope/kernels/cpu/portable/softmax.hpp>
#include <isotope/kernels/cpu/portable/sqrt.hpp>
#include <isotope/kernels/cpu/portable/square.hpp>
#include <isotope/kernels/cpu/portable/sub.hpp>
#include <isotope/kernels/cpu/portable/sum.hpp>
#include <isotope/kernels/cpu/portable/tanh.hpp>
#include <isotope/kernels/cpu/portable/top_k.hpp>
#include <isotope/kernels/cpu/portable/update.hpp>

namespace isotope::cpu {

// clang-format off
template <VectorProgram P> using vector_kernels = boost::mp11::mp_list<
    kernel<op::elementwise, P, kernels::portable>,
    kernel<op::accumulate, P, kernels::portable>,
    kernel<op::global_norm, P, kernels::portable>,
    kernel<op::clip_value, P, kernels::portable>,
    kernel<op::clip_norm, P, kernels::portable>,
    kernel<op::adamw, P, kernels::portable>,
    kernel<op::sgd, P, kernels::portable>,
    kernel<op::momentum, P, kernels::portable>,
    kernel<op::muon, P, kernels::portable>,
    kernel<op::matmul, P, kernels::portable>,
    kernel<op::add, P, kernels::portable>,
    kernel<op::sub, P, kernels::portable>,
    kernel<op::mul, P, kernels::portable>,
    kernel<op::div, P, kernels::portable>,
    kernel<op::div_grad, P, kernels::portable>,
    kernel<op::scale, P, kernels::portable>,
    kernel<op::shift, P, kernels::portable>,
    kernel<op::less, P, kernels::portable>,
    kernel<op::equal, P, kernels::portable>,
    kernel<op::select, P, kernels::portable>,
    kernel<op::exp, P, kernels::portable>,
    kernel<op::log, P, kernels::portable>,
    kernel<op::sqrt, P, kernels::portable>,
    kernel<op::sqrt_grad, P, kernels::portable>,
    kernel<op::square, P, kernels::portable>,
    kernel<op::tanh, P, kernels::portable>,
    kernel<op::tanh_grad, P, kernels::portable>,
    kernel<op::sigmoid, P, kernels::portable>,
    kernel<op::sigmoid_grad, P, kernels::portable>,
    kernel<op::relu, P, kernels::portable>,
    kernel<op::relu_grad, P, kernels::portable>,
    kernel<op::silu, P, kernels::portable>,
    kernel<op::silu_grad, P, kernels::portable>,
    kernel<op::gelu_tanh, P, kernels::portable>,
    kernel<op::gelu_tanh_grad, P, kernels::portable>,
    kernel<op::gelu_erf, P, kernels::portable>,
    kernel<op::gelu_erf_grad, P, kernels::portable>,
    kernel<op::softmax, P, kernels::portable>,
    kernel<op::softmax_grad, P, kernels::portable>,
    kernel<op::log_softmax, P, kernels::portable>,
    kernel<op::log_softmax_grad, P, kernels::portable>,
    kernel<op::dropout, P, kernels::portable>,
    kernel<op::rope, P, kernels::portable>,
    kernel<op::layer_norm, P, kernels::portable>,
    kernel<op::layer_norm_grad, P, kernels::portable>,
    kernel<op::rms_norm, P, kernels::portable>,
    kernel<op::rms_norm_grad, P, kernels::portable>,
    kernel<op::attention, P, kernels::portable>,
    kernel<op::attention_grad, P, kernels::portable>,
    kernel<op::embedding, P, kernels::portable>,
    kernel<op::embedding_grad, P, kernels::portable>,
    kernel<op::cross_entropy, P, kernels::portable>,
    kernel<op::cross_entropy_grad, P, kernels::portable>,
    kernel<op::cumsum, P, kernels::portable>,
    kernel<op::prod, P, kernels::portable>,
    kernel<op::prod_grad, P, kernels::portable>,
    kernel<op::top_k, P, kernels::portable>,
    kernel<op::sum, P, kernels::portable>,
    kernel<op::mean, P, kernels::portable>,
    kernel<op::copy, P, kernels::portable>,
    kernel<op::concat, P, kernels::portable>,
    kernel<op::pad, P, kernels::portable>,
    kernel<op::cast, P, kernels::portable>,
    kernel<op::fill, P, kernels::portable>,
    kernel<op::fft, P, kernels::portable>,
    kernel<op::rfft, P, kernels::portable>,
    kernel<op::irfft, P, kernels::portable>>;
// clang-format on

/// The portable kernels of programs in P. There are none for f64, which falls through to the reference kernels.
template <class P> struct portable_kernels_of {
  using type = boost::mp11::mp_list<>;
};
template <VectorProgram P> struct portable_kernels_of<P> {
  using type = vector_kernels<P>;
};
template <class P> using portable_kernels = typename portable_kernels_of<P>::type;

}  // namespace isotope::cpu
