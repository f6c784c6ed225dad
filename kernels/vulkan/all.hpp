#pragma once
/// The portable and native kernels of the vulkan backend. An op that is missing here has no faster kernel than its reference.
#include <boost/mp11/list.hpp>

namespace isotope::vulkan {

// clang-format off
template <class P> using portable_kernels = boost::mp11::mp_list<>;
template <class P> using native_kernels = boost::mp11::mp_list<>;
// clang-format on

}  // namespace isotope::vulkan
