#pragma once
/// Kernels that are compiled once. Where ISOTOPE_COMPILED_F32, _BF16 or _F64 is defined, programs of that precision link the kernels of the standard
/// targets from a library (CMake: isotope_cpu_f32, ..., built from kernels/cpu/compiled/) instead of compiling them in every translation unit.
/// Library and program must be compiled for the same -march: the namespace of the kernels is named for it, so a mismatch is a link error.
#include "plan_choices.hpp"
#include "table.hpp"
#if !defined(ISOTOPE_COMPILED_F32) && !defined(ISOTOPE_COMPILED_BF16) && !defined(ISOTOPE_COMPILED_F64)
#include "tuned_choices.hpp"
#endif

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
#if defined(ISOTOPE_COMPILED_F32) || defined(ISOTOPE_COMPILED_BF16) || defined(ISOTOPE_COMPILED_F64)
extern template std::shared_ptr<plan_choices> open_choices<tuning>(tuning, const std::string&);
#endif
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
