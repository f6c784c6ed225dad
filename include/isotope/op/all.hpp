#pragma once
/// Every op of the library, and their list.
#include <boost/mp11/list.hpp>

#include "accumulate.hpp"
#include "adamw.hpp"
#include "add.hpp"
#include "all_gather.hpp"
#include "all_reduce.hpp"
#include "arrange.hpp"
#include "assign.hpp"
#include "attention.hpp"
#include "attention_cached.hpp"
#include "attention_packed.hpp"
#include "cache_append.hpp"
#include "cast.hpp"
#include "categorical.hpp"
#include "clamp.hpp"
#include "clip_norm.hpp"
#include "clip_value.hpp"
#include "concat.hpp"
#include "copy.hpp"
#include "cross_entropy.hpp"
#include "cross_entropy_part.hpp"
#include "cumsum.hpp"
#include "div.hpp"
#include "dropout.hpp"
#include "elementwise.hpp"
#include "embedding.hpp"
#include "erf.hpp"
#include "exp.hpp"
#include "extremum.hpp"
#include "fft.hpp"
#include "fill.hpp"
#include "floor.hpp"
#include "gelu.hpp"
#include "global_norm.hpp"
#include "layer_norm.hpp"
#include "log.hpp"
#include "logic.hpp"
#include "matmul.hpp"
#include "maximum.hpp"
#include "mul.hpp"
#include "muon.hpp"
#include "pool.hpp"
#include "pow.hpp"
#include "prod.hpp"
#include "reduce_scatter.hpp"
#include "relu.hpp"
#include "rms_norm.hpp"
#include "rope.hpp"
#include "rsqrt.hpp"
#include "sample.hpp"
#include "scale.hpp"
#include "select.hpp"
#include "sgd.hpp"
#include "sigmoid.hpp"
#include "sign.hpp"
#include "silu.hpp"
#include "sine.hpp"
#include "softmax.hpp"
#include "sort.hpp"
#include "sqrt.hpp"
#include "square.hpp"
#include "statistics.hpp"
#include "sub.hpp"
#include "sum.hpp"
#include "take_along.hpp"
#include "tanh.hpp"
#include "top_k.hpp"
#include "view.hpp"

namespace isotope {

/// The one list of the library's ops. Kernel tables, specifications and reports follow from it: a kernel set has a kernel of each of these ops for
/// which its backend's kernel<Op, Precision, Set> is specialised. The order has no meaning.
// clang-format off
using library_ops = boost::mp11::mp_list<
    op::accumulate, op::adamw, op::add, op::all_gather, op::all_gather_pieces, op::all_reduce, op::argmax, op::attention, op::attention_cached, op::attention_grad, op::attention_packed,
    op::cache_append, op::cast, op::categorical, op::clip_norm, op::clip_value, op::concat, op::copy, op::cos, op::cross_entropy,
    op::cross_entropy_grad, op::cross_entropy_part_grad, op::cumsum, op::div, op::div_grad, op::dropout, op::elementwise, op::embedding, op::embedding_grad, op::equal,
    op::erf, op::exp, op::expand, op::fft, op::fill, op::floor, op::gelu_erf, op::gelu_erf_grad, op::gelu_tanh, op::gelu_tanh_grad,
    op::global_norm, op::irfft, op::layer_norm, op::layer_norm_grad, op::less, op::log, op::log_softmax, op::log_softmax_grad, op::matmul,
    op::max, op::maximum, op::mean, op::min, op::minimum, op::momentum, op::mul, op::muon, op::narrow, op::pad, op::permute, op::pool,
    op::pow, op::prod, op::prod_grad, op::reduce_scatter, op::relu, op::relu_grad, op::reshape, op::rfft, op::rms_norm, op::rms_norm_grad, op::rope, op::rsqrt,
    op::sample, op::scale, op::scatter_add, op::select, op::sgd, op::shift, op::sigmoid, op::sigmoid_grad, op::sign, op::silu,
    op::silu_grad, op::sin, op::softmax, op::softmax_grad, op::split, op::sqrt, op::sqrt_grad, op::square, op::sub, op::sum,
    op::take_along, op::tanh, op::tanh_grad, op::top_k>;
// clang-format on

}  // namespace isotope
