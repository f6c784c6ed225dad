#pragma once
/// The portable and native kernels of the vulkan backend. An op that is missing here has no faster kernel than its reference.
#include <boost/mp11/algorithm.hpp>
#include <boost/mp11/list.hpp>

#include <isotope/kernels/vulkan/attention.hpp>
#include <isotope/kernels/vulkan/attention_grad.hpp>
#include <isotope/kernels/vulkan/elementwise.hpp>
#include <isotope/kernels/vulkan/instructions.hpp>
#include <isotope/kernels/vulkan/matmul_khr.hpp>

namespace isotope::vulkan {

// clang-format off
template <class P> using portable_kernels = boost::mp11::mp_append<instruction_kernels<P, kernels::portable>, boost::mp11::mp_list<
    kernel<op::elementwise, P, kernels::portable>,
    kernel<op::attention, P, kernels::portable>,
    kernel<op::attention_grad, P, kernels::portable>,
    kernel<op::matmul, P, kernels::portable>>>;
template <class P> using native_kernels = boost::mp11::mp_list<
    kernel<op::matmul, P, kernels::native>>;
// clang-format on

}  // namespace isotope::vulkan
