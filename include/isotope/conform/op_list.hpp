#pragma once
/// Which ops of the library have a specification, and which are gradient kernels, covered by the op whose gradient they compute. Collectives have none, since one device
/// alone cannot run them: tests/dist/collectives_test.cpp covers them.
#include <boost/mp11/algorithm.hpp>
#include <boost/mp11/list.hpp>
#include <type_traits>

#include "../op/all.hpp"

namespace isotope::conform {

/// A gradient kernel names in `gradient_of` the op whose gradient cases run it.
template <class Op>
concept GradientKernel = requires { typename Op::gradient_of; };

namespace op_list_detail {
template <class Op> using is_gradient_kernel = std::bool_constant<GradientKernel<Op>>;
template <class Op>
using has_no_cases = std::bool_constant<GradientKernel<Op> || info<Op>.collective || std::is_same_v<Op, op::elementwise>>;
}  // namespace op_list_detail

using gradient_kernels = boost::mp11::mp_copy_if<library_ops, op_list_detail::is_gradient_kernel>;
/// The others, but for collectives and the step in which every element-wise op runs.
using specified_ops = boost::mp11::mp_remove_if<library_ops, op_list_detail::has_no_cases>;

}  // namespace isotope::conform
