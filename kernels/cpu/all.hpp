#pragma once
/// The portable kernel set of the cpu backend: vector loops, an own matrix product, threads; no special instruction is asked for.
#include <boost/mp11/list.hpp>

#include <isotope/kernels/cpu/add.hpp>
#include <isotope/kernels/cpu/attention.hpp>
#include <isotope/kernels/cpu/attention_grad.hpp>
#include <isotope/kernels/cpu/cast.hpp>
#include <isotope/kernels/cpu/copy.hpp>
#include <isotope/kernels/cpu/cross_entropy.hpp>
#include <isotope/kernels/cpu/cumsum.hpp>
#include <isotope/kernels/cpu/div.hpp>
#include <isotope/kernels/cpu/dropout.hpp>
#include <isotope/kernels/cpu/elementwise.hpp>
#include <isotope/kernels/cpu/embedding.hpp>
#include <isotope/kernels/cpu/exp.hpp>
#include <isotope/kernels/cpu/fft.hpp>
#include <isotope/kernels/cpu/fill.hpp>
#include <isotope/kernels/cpu/gelu.hpp>
#include <isotope/kernels/cpu/layer_norm.hpp>
#include <isotope/kernels/cpu/log.hpp>
#include <isotope/kernels/cpu/matmul.hpp>
#include <isotope/kernels/cpu/mul.hpp>
#include <isotope/kernels/cpu/muon.hpp>
#include <isotope/kernels/cpu/prod.hpp>
#include <isotope/kernels/cpu/relu.hpp>
#include <isotope/kernels/cpu/rms_norm.hpp>
#include <isotope/kernels/cpu/rope.hpp>
#include <isotope/kernels/cpu/scale.hpp>
#include <isotope/kernels/cpu/select.hpp>
#include <isotope/kernels/cpu/sigmoid.hpp>
#include <isotope/kernels/cpu/silu.hpp>
#include <isotope/kernels/cpu/softmax.hpp>
#include <isotope/kernels/cpu/sqrt.hpp>
#include <isotope/kernels/cpu/square.hpp>
#include <isotope/kernels/cpu/sub.hpp>
#include <isotope/kernels/cpu/sum.hpp>
#include <isotope/kernels/cpu/tanh.hpp>
#include <isotope/kernels/cpu/top_k.hpp>
#include <isotope/kernels/cpu/update.hpp>

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

/// The portable kernels of programs in P: none for f64, which falls through to the reference kernels.
template <class P> struct portable_kernels_of {
  using type = boost::mp11::mp_list<>;
};
template <VectorProgram P> struct portable_kernels_of<P> {
  using type = vector_kernels<P>;
};
template <class P> using portable_kernels = typename portable_kernels_of<P>::type;

}  // namespace isotope::cpu
