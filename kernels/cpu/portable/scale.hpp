#pragma once
/// Bound by bytes.
#include <isotope/kernels/cpu/body/each.hpp>
#include <isotope/op/scale.hpp>

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
namespace portable {

struct scale {
  static void block(const void* const* in, void* out, std::int64_t n, double scalar) {
    each<1>(in, out, n, [k = float(scalar)](float x) ISOTOPE_INLINE_LAMBDA { return k * x; });
  }
};

struct shift {
  static void block(const void* const* in, void* out, std::int64_t n, double scalar) {
    each<1>(in, out, n, [k = float(scalar)](float x) ISOTOPE_INLINE_LAMBDA { return x + k; });
  }
};

}  // namespace portable
}  // namespace arch

template <VectorProgram P> struct kernel<op::scale, P, kernels::portable> : portable::scale {};
template <VectorProgram P> struct kernel<op::shift, P, kernels::portable> : portable::shift {};

}  // namespace isotope::cpu
