#pragma once
/// The native kernel set of the cpu backend: what the wide vectors and the caches of today's processors are asked for by name. Where the
/// translation unit may use neither AVX-512 nor AVX2 with FMA it is empty, and portable kernels run.
#include <boost/mp11/list.hpp>

#include <isotope/kernels/cpu/native/matmul.hpp>

namespace isotope::cpu {

template <class P> struct native_kernels_of {
  using type = boost::mp11::mp_list<>;
};
template <NativeProgram P> struct native_kernels_of<P> {
  using type = boost::mp11::mp_list<kernel<op::matmul, P, kernels::native>>;
};
template <class P> using native_kernels = typename native_kernels_of<P>::type;

}  // namespace isotope::cpu
