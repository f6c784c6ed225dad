#pragma once
/// The reference kernels of the vulkan backend: plain code, one element or row per invocation. The other sets are compared with them on a device.
#include <boost/mp11/algorithm.hpp>
#include <boost/mp11/list.hpp>

#include <isotope/kernels/vulkan/body/instructions.hpp>
#include <isotope/kernels/vulkan/reference/attention.hpp>
#include <isotope/kernels/vulkan/reference/cast.hpp>
#include <isotope/kernels/vulkan/reference/categorical.hpp>
#include <isotope/kernels/vulkan/reference/copy.hpp>
#include <isotope/kernels/vulkan/reference/cross_entropy.hpp>
#include <isotope/kernels/vulkan/reference/cumsum.hpp>
#include <isotope/kernels/vulkan/reference/dropout.hpp>
#include <isotope/kernels/vulkan/reference/elementwise.hpp>
#include <isotope/kernels/vulkan/reference/embedding.hpp>
#include <isotope/kernels/vulkan/reference/extremum.hpp>
#include <isotope/kernels/vulkan/reference/fft.hpp>
#include <isotope/kernels/vulkan/reference/fill.hpp>
#include <isotope/kernels/vulkan/reference/layer_norm.hpp>
#include <isotope/kernels/vulkan/reference/matmul.hpp>
#include <isotope/kernels/vulkan/reference/muon.hpp>
#include <isotope/kernels/vulkan/reference/prod.hpp>
#include <isotope/kernels/vulkan/reference/rms_norm.hpp>
#include <isotope/kernels/vulkan/reference/rope.hpp>
#include <isotope/kernels/vulkan/reference/softmax.hpp>
#include <isotope/kernels/vulkan/reference/sum.hpp>
#include <isotope/kernels/vulkan/reference/top_k.hpp>
#include <isotope/kernels/vulkan/reference/update.hpp>

namespace isotope::vulkan {

// clang-format off
template <class P> using reference_kernels = boost::mp11::mp_append<instruction_kernels<P, kernels::reference>, boost::mp11::mp_list<
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
    kernel<op::irfft, P, kernels::reference>>>;
// clang-format on

}  // namespace isotope::vulkan
