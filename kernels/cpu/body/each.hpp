#pragma once
/// The loop of the element-wise instructions, over blocks of f32 in L1.
#include <utility>

#include <isotope/kernels/cpu/body/programs.hpp>
#include <isotope/kernels/cpu/math/map.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

/// Provides `block` for a kernel of Op whose `of` takes `Operands` numbers, optionally followed by the scalar.
template <class Op, class P, int Operands> struct each_of {
  static void block(const void* const* in, void* out, std::int64_t n, double scalar) {
    using own = kernel<Op, P, kernels::portable>;
    const auto f = [k = float(scalar)](auto... x) ISOTOPE_INLINE_LAMBDA {
      if constexpr (requires { own::of(x..., k); }) return own::of(x..., k);
      else return own::of(x...);
    };
    [&]<std::size_t... K>(std::index_sequence<K...>) ISOTOPE_INLINE_LAMBDA {
      math::map(n, static_cast<float*>(out), f, static_cast<const float*>(in[K])...);
    }(std::make_index_sequence<std::size_t(Operands)>{});
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable
