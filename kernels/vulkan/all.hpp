#pragma once
/// The portable and native kernels of the vulkan backend. An op that is missing here has only its reference kernel.
#include <boost/mp11/algorithm.hpp>
#include <boost/mp11/list.hpp>

#include <isotope/kernels/vulkan/body/instructions.hpp>
#include <isotope/kernels/vulkan/native/attention.hpp>
#include <isotope/kernels/vulkan/native/attention_grad.hpp>
#include <isotope/kernels/vulkan/native/matmul.hpp>
#include <isotope/kernels/vulkan/portable/attention.hpp>
#include <isotope/kernels/vulkan/portable/attention_grad.hpp>
#include <isotope/kernels/vulkan/portable/cast.hpp>
#include <isotope/kernels/vulkan/portable/copy.hpp>
#include <isotope/kernels/vulkan/portable/cross_entropy.hpp>
#include <isotope/kernels/vulkan/portable/cumsum.hpp>
#include <isotope/kernels/vulkan/portable/dropout.hpp>
#include <isotope/kernels/vulkan/portable/elementwise.hpp>
#include <isotope/kernels/vulkan/portable/embedding.hpp>
#include <isotope/kernels/vulkan/portable/extremum.hpp>
#include <isotope/kernels/vulkan/portable/fft.hpp>
#include <isotope/kernels/vulkan/portable/layer_norm.hpp>
#include <isotope/kernels/vulkan/portable/muon.hpp>
#include <isotope/kernels/vulkan/portable/prod.hpp>
#include <isotope/kernels/vulkan/portable/rms_norm.hpp>
#include <isotope/kernels/vulkan/portable/rope.hpp>
#include <isotope/kernels/vulkan/portable/softmax.hpp>
#include <isotope/kernels/vulkan/portable/sum.hpp>
#include <isotope/kernels/vulkan/portable/top_k.hpp>
#include <isotope/kernels/vulkan/portable/update.hpp>

namespace isotope::vulkan {

// clang-format off
template <class P> using portable_kernels = boost::mp11::mp_append<instruction_kernels<P, kernels::portable>, boost::mp11::mp_list<
    kernel<op::elementwise, P, kernels::portable>,
    kernel<op::attention, P, kernels::portable>,
    kernel<op::attention_grad, P, kernels::portable>,
    kernel<op::matmul, P, kernels::portable>,
    kernel<op::accumulate, P, kernels::portable>,
    kernel<op::global_norm, P, kernels::portable>,
    kernel<op::clip_value, P, kernels::portable>,
    kernel<op::clip_norm, P, kernels::portable>,
    kernel<op::adamw, P, kernels::portable>,
    kernel<op::sgd, P, kernels::portable>,
    kernel<op::momentum, P, kernels::portable>,
    kernel<op::muon, P, kernels::portable>,
    kernel<op::softmax, P, kernels::portable>,
    kernel<op::softmax_grad, P, kernels::portable>,
    kernel<op::log_softmax, P, kernels::portable>,
    kernel<op::log_softmax_grad, P, kernels::portable>,
    kernel<op::layer_norm, P, kernels::portable>,
    kernel<op::layer_norm_grad, P, kernels::portable>,
    kernel<op::rms_norm, P, kernels::portable>,
    kernel<op::rms_norm_grad, P, kernels::portable>,
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
    kernel<op::max, P, kernels::portable>,
    kernel<op::min, P, kernels::portable>,
    kernel<op::argmax, P, kernels::portable>,
    kernel<op::dropout, P, kernels::portable>,
    kernel<op::rope, P, kernels::portable>,
    kernel<op::copy, P, kernels::portable>,
    kernel<op::concat, P, kernels::portable>,
    kernel<op::pad, P, kernels::portable>,
    kernel<op::cast, P, kernels::portable>,
    kernel<op::fill, P, kernels::portable>,
    kernel<op::fft, P, kernels::portable>,
    kernel<op::rfft, P, kernels::portable>,
    kernel<op::irfft, P, kernels::portable>>>;
template <class P> using native_kernels = boost::mp11::mp_list<
    kernel<op::attention, P, kernels::native>,
    kernel<op::attention_grad, P, kernels::native>,
    kernel<op::matmul, P, kernels::native>>;
// clang-format on

}  // namespace isotope::vulkan
