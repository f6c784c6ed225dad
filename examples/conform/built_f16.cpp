/// The targets of the backend that the program was built for in f16.
#include <isotope/selected.hpp>

#include "open_f16.hpp"

namespace conform_program {
opened open_built_f16(std::string_view kernels, const iso::gpu_options& o) { return open_f16<iso::selected_backend>(kernels, o); }
}  // namespace conform_program
