#pragma once
/// The native kernel set of the cpu backend, written for the wide vectors and the caches of current processors. It is empty where the translation
/// unit may use neither AVX-512 nor AVX2 with FMA; then portable kernels run.
#include <boost/mp11/list.hpp>

#include <isotope/kernels/cpu/native/adamw.hpp>
#include <isotope/kernels/cpu/native/add.hpp>
#include <isotope/kernels/cpu/native/attention.hpp>
#include <isotope/kernels/cpu/native/attention_grad.hpp>
#include <isotope/kernels/cpu/native/cross_entropy.hpp>
#include <isotope/kernels/cpu/native/div.hpp>
#include <isotope/kernels/cpu/native/exp.hpp>
#include <isotope/kernels/cpu/native/gelu.hpp>
#include <isotope/kernels/cpu/native/layer_norm.hpp>
#include <isotope/kernels/cpu/native/log.hpp>
#include <isotope/kernels/cpu/native/matmul.hpp>
#include <isotope/kernels/cpu/native/mul.hpp>
#include <isotope/kernels/cpu/native/muon.hpp>
#include <isotope/kernels/cpu/native/relu.hpp>
#include <isotope/kernels/cpu/native/rms_norm.hpp>
#include <isotope/kernels/cpu/native/scale.hpp>
#include <isotope/kernels/cpu/native/select.hpp>
#include <isotope/kernels/cpu/native/sigmoid.hpp>
#include <isotope/kernels/cpu/native/silu.hpp>
#include <isotope/kernels/cpu/native/softmax.hpp>
#include <isotope/kernels/cpu/native/sqrt.hpp>
#include <isotope/kernels/cpu/native/square.hpp>
#include <isotope/kernels/cpu/native/sub.hpp>
#include <isotope/kernels/cpu/native/sum.hpp>
#include <isotope/kernels/cpu/native/tanh.hpp>

namespace isotope::cpu {

template <class P> struct native_kernels_of {
  using type = boost::mp11::mp_list<>;
};
template <NativeProgram P> struct native_kernels_of<P> {
  // clang-format off
  using type = boost::mp11::mp_list<
      kernel<op::matmul, P, kernels::native>,
      kernel<op::attention, P, kernels::native>,
      kernel<op::attention_grad, P, kernels::native>,
      kernel<op::add, P, kernels::native>,
      kernel<op::sub, P, kernels::native>,
      kernel<op::mul, P, kernels::native>,
      kernel<op::div, P, kernels::native>,
      kernel<op::div_grad, P, kernels::native>,
      kernel<op::scale, P, kernels::native>,
      kernel<op::shift, P, kernels::native>,
      kernel<op::less, P, kernels::native>,
      kernel<op::equal, P, kernels::native>,
      kernel<op::select, P, kernels::native>,
      kernel<op::relu, P, kernels::native>,
      kernel<op::relu_grad, P, kernels::native>,
      kernel<op::exp, P, kernels::native>,
      kernel<op::log, P, kernels::native>,
      kernel<op::sqrt, P, kernels::native>,
      kernel<op::sqrt_grad, P, kernels::native>,
      kernel<op::square, P, kernels::native>,
      kernel<op::tanh, P, kernels::native>,
      kernel<op::tanh_grad, P, kernels::native>,
      kernel<op::sigmoid, P, kernels::native>,
      kernel<op::sigmoid_grad, P, kernels::native>,
      kernel<op::silu, P, kernels::native>,
      kernel<op::silu_grad, P, kernels::native>,
      kernel<op::gelu_erf, P, kernels::native>,
      kernel<op::gelu_erf_grad, P, kernels::native>,
      kernel<op::gelu_tanh, P, kernels::native>,
      kernel<op::gelu_tanh_grad, P, kernels::native>,
      kernel<op::softmax, P, kernels::native>,
      kernel<op::softmax_grad, P, kernels::native>,
      kernel<op::log_softmax, P, kernels::native>,
      kernel<op::log_softmax_grad, P, kernels::native>,
      kernel<op::layer_norm, P, kernels::native>,
      kernel<op::layer_norm_grad, P, kernels::native>,
      kernel<op::rms_norm, P, kernels::native>,
      kernel<op::rms_norm_grad, P, kernels::native>,
      kernel<op::cross_entropy, P, kernels::native>,
      kernel<op::cross_entropy_grad, P, kernels::native>,
      kernel<op::sum, P, kernels::native>,
      kernel<op::mean, P, kernels::native>,
      kernel<op::adamw, P, kernels::native>,
      kernel<op::muon, P, kernels::native>>;
  // clang-format on
};
template <class P> using native_kernels = typename native_kernels_of<P>::type;

}  // namespace isotope::cpu
