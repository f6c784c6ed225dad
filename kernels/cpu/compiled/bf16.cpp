/// The cpu kernels of every bf16 target, compiled once: see backend/cpu/compiled.hpp.
#include <isotope/backend/cpu.hpp>
#include <isotope/backend/cpu/tuned_choices.hpp>

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
template std::span<const entry> code_of<target<backend::cpu, precision::bf16, kernels::native>>();
template std::span<const entry> code_of<target<backend::cpu, precision::bf16, kernels::portable>>();
template std::span<const entry> code_of<target<backend::cpu, precision::bf16, kernels::reference>>();
template std::shared_ptr<plan_choices> open_choices<tuning>(tuning, const std::string&);
}  // namespace arch
}  // namespace isotope::cpu
