/// The cpu targets in bf16.
#include <isotope/backend/cpu.hpp>

#include "open_set.hpp"

namespace conform_program {
opened open_cpu_bf16(std::string_view kernels, const iso::gpu_options& o) {
  return open_set<iso::backend::cpu, iso::precision::bf16>(kernels, o);
}
}  // namespace conform_program
