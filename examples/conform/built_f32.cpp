/// The targets of the backend that the program was built for in f32.
#include <isotope/selected.hpp>

#include "open_set.hpp"

namespace conform_program {
opened open_built_f32(std::string_view kernels, const iso::gpu_options& o) {
  using built = iso::selected_backend;
  if constexpr (built::name == "cpu") return open_cpu_f32(kernels, o);
  else return open_set<built, iso::precision::f32>(kernels, o);
}
}  // namespace conform_program
