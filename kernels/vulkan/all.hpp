#pragma once
/// The portable and native kernels of the vulkan backend. An op that is missing here has no faster kernel than its reference.
#include <boost/mp11/algorithm.hpp>
#include <boost/mp11/list.hpp>

#include <isotope/kernels/vulkan/attention.hpp>
#include <isotope/kernels/vulkan/attention_grad.hpp>
#include <isotope/kernels/vulkan/attention_grad_khr.hpp>
#include <isotope/kernels/vulkan/attention_khr.hpp>
#include <isotope/kernels/vulkan/cast.hpp>
#include <isotope/kernels/vulkan/copy.hpp>
#include <isotope/kernels/vulkan/cross_entropy.hpp>
#include <isotope/kernels/vulkan/cumsum.hpp>
#include <isotope/kernels/vulkan/dropout.hpp>
#include <isotope/kernels/vulkan/elementwise.hpp>
#include <isotope/kernels/vulkan/embedding.hpp>
#include <isotope/kernels/vulkan/extremum.hpp>
#include <isotope/kernels/vulkan/fft.hpp>
#include <isotope/kernels/vulkan/instructions.hpp>
#include <isotope/kernels/vulkan/layer_norm.hpp>
#include <isotope/kernels/vulkan/matmul_khr.hpp>
#include <isotope/kernels/vulkan/muon.hpp>
#include <isotope/kernels/vulkan/prod.hpp>
#include <isotope/kernels/vulkan/rms_norm.hpp>
#include <isotope/kernels/vulkan/rope.hpp>
#include <isotope/kernels/vulkan/softmax.hpp>
#include <isotope/kernels/vulkan/sum.hpp>
#include <isotope/kernels/vulkan/top_k.hpp>
#include <isotope/kernels/vulkan/update.hpp>

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
