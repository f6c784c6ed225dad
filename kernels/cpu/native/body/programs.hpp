#pragma once
/// The programs that have native kernels: those computed in f32, where the compiler may use AVX-512, or AVX2 with FMA.
#include <string_view>

#include <isotope/kernels/cpu/body/programs.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

inline constexpr bool available = config::has_fma && config::vector_bytes >= 32;
/// The reason why an op runs on a lower kernel set.
inline constexpr std::string_view reason = available
                                               ? "the cpu backend has no native kernel of this op: portable vector loops run in its place"
                                               : "native cpu kernels need AVX-512, or AVX2 with FMA, and this build's flags (-march, "
                                                 "CPU_ARCH) allow neither: portable runs in their place";

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native

namespace isotope::cpu {

template <class P>
concept NativeProgram = native::available && VectorProgram<P>;

}  // namespace isotope::cpu
