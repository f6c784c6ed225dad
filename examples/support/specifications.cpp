/// The specifications of the library, for isotope-conform and its tests. They are the same for all backends and precisions.
#include <isotope/conform/library_specs.hpp>

namespace isotope::conform {
std::span<const spec> every_spec() { return library_specs(); }
std::span<const gradient_kernel_names> every_gradient_kernel() { return library_gradient_kernels(); }
}  // namespace isotope::conform
