/// The specifications, and the proof that every kernel of every backend of this program has one.
#include <isotope/conform/library_specs.hpp>
#include <isotope/selected.hpp>

namespace {
/// An op of specified_ops without a specification does not compile. A backend with a list of kernels of its own may only have ops of library_ops.
template <class K> using is_specified = boost::mp11::mp_contains<isotope::library_ops, typename isotope::kernel_traits<K>::op>;
static_assert(boost::mp11::mp_all_of<isotope::selected_backend::kernels, is_specified>::value,
              "a kernel's op has no specification: add include/isotope/conform/op/<op>.hpp and name the op in op/all.hpp");
}  // namespace

namespace isotope::conform {
std::span<const spec> every_spec() { return library_specs(); }
std::span<const gradient_kernel_names> every_gradient_kernel() { return library_gradient_kernels(); }
}  // namespace isotope::conform
