#pragma once
/// Kernels compiled once: where ISOTOPE_COMPILED_F32, _BF16 or _F64 is defined, programs of that precision take the code of the standard
/// targets from a library (CMake: isotope_cpu_f32, ..., made of kernels/cpu/compiled/) instead of compiling it in every translation unit.
/// Library and program must have the same -march: their kernels stand in a namespace named for it, so that others do not link.
#include "table.hpp"

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
#if defined(ISOTOPE_COMPILED_F32)
extern template std::span<const entry> code_of<target<backend::cpu, precision::f32, kernels::native>>();
extern template std::span<const entry> code_of<target<backend::cpu, precision::f32, kernels::portable>>();
extern template std::span<const entry> code_of<target<backend::cpu, precision::f32, kernels::reference>>();
#endif
#if defined(ISOTOPE_COMPILED_BF16)
extern template std::span<const entry> code_of<target<backend::cpu, precision::bf16, kernels::native>>();
extern template std::span<const entry> code_of<target<backend::cpu, precision::bf16, kernels::portable>>();
extern template std::span<const entry> code_of<target<backend::cpu, precision::bf16, kernels::reference>>();
#endif
#if defined(ISOTOPE_COMPILED_F64)
extern template std::span<const entry> code_of<target<backend::cpu, precision::f64, kernels::native>>();
extern template std::span<const entry> code_of<target<backend::cpu, precision::f64, kernels::portable>>();
extern template std::span<const entry> code_of<target<backend::cpu, precision::f64, kernels::reference>>();
#endif
}  // namespace arch
}  // namespace isotope::cpu
