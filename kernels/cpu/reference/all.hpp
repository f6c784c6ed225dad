#pragma once
/// The reference kernels: plain loops over the definitions, the oracle of every other kernel set.
#include <boost/mp11/list.hpp>

#include "add.hpp"
#include "attention.hpp"
#include "cast.hpp"
#include "categorical.hpp"
#include "concat.hpp"
#include "copy.hpp"
#include "cross_entropy.hpp"
#include "cumsum.hpp"
#include "div.hpp"
#include "dropout.hpp"
#include "embedding.hpp"
#include "exp.hpp"
#include "extremum.hpp"
#include "fft.hpp"
#include "fill.hpp"
#include "gelu.hpp"
#include "layer_norm.hpp"
#include "log.hpp"
#include "matmul.hpp"
#include "mul.hpp"
#include "muon.hpp"
#include "prod.hpp"
#include "relu.hpp"
#include "rms_norm.hpp"
#include "rope.hpp"
#include "scale.hpp"
#include "select.hpp"
#include "sigmoid.hpp"
#include "silu.hpp"
#include "softmax.hpp"
#include "sqrt.hpp"
#include "square.hpp"
#include "sub.hpp"
#include "sum.hpp"
#include "tanh.hpp"
#include "top_k.hpp"
#include "update.hpp"
#include "view.hpp"

namespace isotope::cpu {

// clang-format off
template <class P> using reference_kernels = boost::mp11::mp_list<
    kernel<op::elementwise, P, kernels::reference>,
    kernel<op::accumulate, P, kernels::reference>,
    kernel<op::global_norm, P, kernels::reference>,
    kernel<op::clip_value, P, kernels::reference>,
    kernel<op::clip_norm, P, kernels::reference>,
    kernel<op::adamw, P, kernels::reference>,
    kernel<op::sgd, P, kernels::reference>,
    kernel<op::momentum, P, kernels::reference>,
    kernel<op::muon, P, kernels::reference>,
    kernel<op::matmul, P, kernels::reference>,
    kernel<op::add, P, kernels::reference>,
    kernel<op::sub, P, kernels::reference>,
    kernel<op::mul, P, kernels::reference>,
    kernel<op::div, P, kernels::reference>,
    kernel<op::div_grad, P, kernels::reference>,
    kernel<op::scale, P, kernels::reference>,
    kernel<op::shift, P, kernels::reference>,
    kernel<op::less, P, kernels::reference>,
    kernel<op::equal, P, kernels::reference>,
    kernel<op::select, P, kernels::reference>,
    kernel<op::exp, P, kernels::reference>,
    kernel<op::log, P, kernels::reference>,
    kernel<op::sqrt, P, kernels::reference>,
    kernel<op::sqrt_grad, P, kernels::reference>,
    kernel<op::square, P, kernels::reference>,
    kernel<op::tanh, P, kernels::reference>,
    kernel<op::tanh_grad, P, kernels::reference>,
    kernel<op::sigmoid, P, kernels::reference>,
    kernel<op::sigmoid_grad, P, kernels::reference>,
    kernel<op::relu, P, kernels::reference>,
    kernel<op::relu_grad, P, kernels::reference>,
    kernel<op::silu, P, kernels::reference>,
    kernel<op::silu_grad, P, kernels::reference>,
    kernel<op::gelu_tanh, P, kernels::reference>,
    kernel<op::gelu_tanh_grad, P, kernels::reference>,
    kernel<op::gelu_erf, P, kernels::reference>,
    kernel<op::gelu_erf_grad, P, kernels::reference>,
    kernel<op::softmax, P, kernels::reference>,
    kernel<op::softmax_grad, P, kernels::reference>,
    kernel<op::log_softmax, P, kernels::reference>,
    kernel<op::log_softmax_grad, P, kernels::reference>,
    kernel<op::layer_norm, P, kernels::reference>,
    kernel<op::layer_norm_grad, P, kernels::reference>,
    kernel<op::rms_norm, P, kernels::reference>,
    kernel<op::rms_norm_grad, P, kernels::reference>,
    kernel<op::attention, P, kernels::reference>,
    kernel<op::attention_grad, P, kernels::reference>,
    kernel<op::rope, P, kernels::reference>,
    kernel<op::embedding, P, kernels::reference>,
    kernel<op::embedding_grad, P, kernels::reference>,
    kernel<op::cross_entropy, P, kernels::reference>,
    kernel<op::cross_entropy_grad, P, kernels::reference>,
    kernel<op::cumsum, P, kernels::reference>,
    kernel<op::prod, P, kernels::reference>,
    kernel<op::prod_grad, P, kernels::reference>,
    kernel<op::top_k, P, kernels::reference>,
    kernel<op::dropout, P, kernels::reference>,
    kernel<op::categorical, P, kernels::reference>,
    kernel<op::sum, P, kernels::reference>,
    kernel<op::mean, P, kernels::reference>,
    kernel<op::max, P, kernels::reference>,
    kernel<op::min, P, kernels::reference>,
    kernel<op::argmax, P, kernels::reference>,
    kernel<op::copy, P, kernels::reference>,
    kernel<op::concat, P, kernels::reference>,
    kernel<op::pad, P, kernels::reference>,
    kernel<op::cast, P, kernels::reference>,
    kernel<op::fill, P, kernels::reference>,
    kernel<op::fft, P, kernels::reference>,
    kernel<op::rfft, P, kernels::reference>,
    kernel<op::irfft, P, kernels::reference>>;
// clang-format on

}  // namespace isotope::cpu
