#pragma once
/// Element-wise loops: bound by bytes for plain arithmetic, by flops for exp and similar functions.
///
/// Elements are processed in blocks of 32 (two AVX-512 vectors, enough independent work to hide latency). The last, shorter block is copied to a
/// padded buffer and takes the same code, so an element's result depends neither on its place in the array nor on the array's length. The constant
/// trip count also lets g++ vectorise at -O2.
#include <cstdint>
#include <type_traits>

#include <isotope/core/compiler.hpp>
#include <isotope/core/precision.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::math {

inline constexpr int map_block = 32;

/// Returns the number to compute with: f32 for bf16 and f16, else the stored type itself.
template <class T> ISOTOPE_INLINE auto widen(T x) {
  if constexpr (std::is_same_v<T, bfloat16> || std::is_same_v<T, float16>) {
    return static_cast<float>(x);
  } else {
    return x;
  }
}
template <class Out, class T> ISOTOPE_INLINE Out narrow(T x) { return static_cast<Out>(x); }

template <class T> struct padded_block {
  T at[map_block] = {};
};

template <class Out, class F, class... In> ISOTOPE_INLINE void map_one_block(Out* y, const F& f, const In*... x) {
  Out out[map_block];  // stays in registers; without it y might alias any x, and vectorising would need a check
  for (int j = 0; j < map_block; ++j) out[j] = narrow<Out>(f(widen(x[j])...));
  for (int j = 0; j < map_block; ++j) y[j] = out[j];
}

/// y[i] = f(x0[i], x1[i], ...) for 0 <= i < n. f takes and returns widened numbers; a bf16 result is rounded once.
/// y may be one of the inputs but must not overlap one otherwise. A long f must be a lambda with ISOTOPE_INLINE_LAMBDA, or -O2 does not inline it.
/// Past the end, f sees zeros; no memory is read there.
template <class Out, class F, class... In> ISOTOPE_INLINE void map(std::int64_t n, Out* y, const F& f, const In*... x) {
  std::int64_t i = 0;
  for (; i + map_block <= n; i += map_block) map_one_block(y + i, f, (x + i)...);
  const int rest = int(n - i);
  if (rest == 0) return;
  [&](auto... padded) {
    auto fill = [&](auto& to, const auto* from) {
      for (int j = 0; j < rest; ++j) to.at[j] = from[j];
    };
    (fill(padded, x + i), ...);
    Out out[map_block];
    map_one_block(out, f, padded.at...);
    for (int j = 0; j < rest; ++j) y[i + j] = out[j];
  }(padded_block<In>{}...);
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::math
