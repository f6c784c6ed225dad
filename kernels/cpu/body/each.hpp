#pragma once
/// The loop of the element-wise instructions, over blocks of f32 in L1.
#include <utility>

#include <isotope/kernels/cpu/body/programs.hpp>
#include <isotope/kernels/cpu/math/map.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

/// out[i] = f(in[0][i], ..., in[Operands - 1][i]); out may be one of the operands.
template <int Operands, class F> ISOTOPE_INLINE void each(const void* const* in, void* out, std::int64_t n, const F& f) {
  [&]<std::size_t... K>(std::index_sequence<K...>) {
    math::map(n, static_cast<float*>(out), f, static_cast<const float*>(in[K])...);
  }(std::make_index_sequence<std::size_t(Operands)>{});
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable
