#pragma once
/// Which kernels a backend has: those for which its template is specialised.
#include <boost/mp11/algorithm.hpp>
#include <boost/mp11/list.hpp>
#include <type_traits>

#include "../core/target.hpp"
#include "../op/all.hpp"

namespace isotope {

/// Whether a kernel<Op, P, Set> is there. The template of a backend is only declared, so that what is not specialised is incomplete.
template <class K>
concept DefinedKernel = requires { sizeof(K); };

namespace kernel_list_detail {
template <class K> using is_defined = std::bool_constant<DefinedKernel<K>>;
template <template <class, class, class> class Kernel, class P, class Set, class Ops> struct kernel_set_of;
template <template <class, class, class> class Kernel, class P, class Set, class... Op>
struct kernel_set_of<Kernel, P, Set, boost::mp11::mp_list<Op...>> {
  using type = boost::mp11::mp_copy_if<boost::mp11::mp_list<Kernel<Op, P, Set>...>, is_defined>;
};
}  // namespace kernel_list_detail

/// The kernels of one set in one precision. Their headers stand before the first use of this list.
template <template <class, class, class> class Kernel, class P, class Set>
using library_kernels = typename kernel_list_detail::kernel_set_of<Kernel, P, Set, library_ops>::type;

/// Every kernel of a backend for ops of the library, in the given precisions.
template <template <class, class, class> class Kernel, class... P>
using every_library_kernel =
    boost::mp11::mp_append<library_kernels<Kernel, P, kernels::native>..., library_kernels<Kernel, P, kernels::portable>...,
                           library_kernels<Kernel, P, kernels::reference>...>;

}  // namespace isotope
