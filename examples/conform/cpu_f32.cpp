/// The cpu targets in f32.
#include <isotope/backend/cpu.hpp>

#include "open_set.hpp"

namespace conform_program {
opened open_cpu_f32(std::string_view kernels, const iso::gpu_options& o) {
  return open_set<iso::backend::cpu, iso::precision::f32>(kernels, o);
}
}  // namespace conform_program
