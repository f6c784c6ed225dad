#pragma once
/// The reference kernels of the vulkan backend: plain, one invocation an element or a row; what the other sets are compared with on a device.
#include <boost/mp11/list.hpp>

#include <isotope/kernels/vulkan/reference/embedding.hpp>

namespace isotope::vulkan {

// clang-format off
template <class P> using reference_kernels = boost::mp11::mp_list<
    kernel<op::embedding, P, kernels::reference>>;
// clang-format on

}  // namespace isotope::vulkan
