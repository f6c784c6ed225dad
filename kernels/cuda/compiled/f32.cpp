/// The cuda kernels of every f32 target, compiled once: see backend/cuda/compiled.hpp.
#include <isotope/backend/cuda.hpp>

namespace isotope::cuda {
template std::span<const record_function> code_of<target<backend::cuda, precision::f32, kernels::native>>();
template std::span<const record_function> code_of<target<backend::cuda, precision::f32, kernels::portable>>();
template std::span<const record_function> code_of<target<backend::cuda, precision::f32, kernels::reference>>();
}  // namespace isotope::cuda
