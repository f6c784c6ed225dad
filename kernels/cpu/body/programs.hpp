#pragma once
/// The programs that the portable kernels compute in f32. f64 programs fall through to the reference kernels.
#include <concepts>

#include <isotope/backend/cpu/launch.hpp>
#include <isotope/core/compiler.hpp>

namespace isotope::cpu {

template <class P>
concept VectorProgram = std::same_as<P, precision::f32> || std::same_as<P, precision::bf16>;

}  // namespace isotope::cpu
