#pragma once
/// Bound by bytes.
#include <isotope/kernels/cpu/body/each.hpp>
#include <isotope/op/square.hpp>

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
namespace portable {

struct square {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    each<1>(in, out, n, [](float x) ISOTOPE_INLINE_LAMBDA { return x * x; });
  }
};

}  // namespace portable
}  // namespace arch

template <VectorProgram P> struct kernel<op::square, P, kernels::portable> : portable::square {};

}  // namespace isotope::cpu
