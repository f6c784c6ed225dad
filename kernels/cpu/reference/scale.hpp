#pragma once
/// Scales or shifts by a constant, which is rounded to the compute type first.
#include <isotope/kernels/cpu/reference/body/block.hpp>
#include <isotope/op/scale.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::scale, P, kernels::reference> {
  static void block(const void* const* in, void* out, std::int64_t n, double k) {
    using A = typename P::accum;
    reference::each<A>(in, out, n, [k = double(A(k))](double x) { return k * x; });
  }
};
template <class P> struct kernel<op::shift, P, kernels::reference> {
  static void block(const void* const* in, void* out, std::int64_t n, double k) {
    using A = typename P::accum;
    reference::each<A>(in, out, n, [k = double(A(k))](double x) { return x + k; });
  }
};

}  // namespace isotope::cpu
