#pragma once
/// Bound by flops: a polynomial of degree 6.
#include <isotope/kernels/cpu/body/each.hpp>
#include <isotope/kernels/cpu/math/exp.hpp>
#include <isotope/op/exp.hpp>

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
namespace portable {

struct exp {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    each<1>(in, out, n, [](float x) ISOTOPE_INLINE_LAMBDA { return math::exp(x); });
  }
};

}  // namespace portable
}  // namespace arch

template <VectorProgram P> struct kernel<op::exp, P, kernels::portable> : portable::exp {};

}  // namespace isotope::cpu
