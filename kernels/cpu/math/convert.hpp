#pragma once
/// bf16 <-> f32 of contiguous arrays: bound by bytes. To bf16 rounds to nearest, ties to even, keeps NaN as a quiet NaN; from bf16 is exact.
#include <isotope/kernels/cpu/math/map.hpp>

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
namespace math {

/// y[i] = x[i] in the format of y. x and y do not overlap, unless they are the same array of the same type.
template <class From, class To> void convert(const From* x, To* y, std::int64_t n) {
  map(n, y, [](auto v) ISOTOPE_INLINE_LAMBDA { return v; }, x);
}

}  // namespace math
}  // namespace arch
}  // namespace isotope::cpu
