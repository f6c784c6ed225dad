/// The targets of the backend that the program was built for in bf16.
#include <isotope/selected.hpp>

#include "open_set.hpp"

namespace conform_program {
opened open_built_bf16(std::string_view kernels, const iso::gpu_options& o) {
  using built = iso::selected_backend;
  if constexpr (built::name == "cpu") return open_cpu_bf16(kernels, o);
  else return open_set<built, iso::precision::bf16>(kernels, o);
}
}  // namespace conform_program
