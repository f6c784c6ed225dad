/// The cpu kernels of every f64 target, compiled once: see backend/cpu/compiled.hpp.
#include <isotope/backend/cpu.hpp>

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
template std::span<const entry> code_of<target<backend::cpu, precision::f64, kernels::native>>();
template std::span<const entry> code_of<target<backend::cpu, precision::f64, kernels::portable>>();
template std::span<const entry> code_of<target<backend::cpu, precision::f64, kernels::reference>>();
}  // namespace arch
}  // namespace isotope::cpu
