/// The specifications, and the proof that every kernel of every backend of this program has one.
#include <isotope/backend/cpu.hpp>
#include <isotope/conform/library_specs.hpp>
#include <isotope/selected.hpp>

namespace {
template <class K> using is_specified = std::bool_constant<isotope::conform::Specified<typename isotope::kernel_traits<K>::op>>;
static_assert(boost::mp11::mp_all_of<isotope::backend::cpu::kernels, is_specified>::value,
              "a cpu kernel's op has no specification: add include/isotope/conform/op/<op>.hpp and name it in conform/op_list.hpp");
static_assert(boost::mp11::mp_all_of<isotope::selected_backend::kernels, is_specified>::value,
              "a kernel's op has no specification: add include/isotope/conform/op/<op>.hpp and name it in conform/op_list.hpp");
}  // namespace

namespace isotope::conform {
std::span<const spec> every_spec() { return library_specs(); }
std::span<const gradient_kernel_names> every_gradient_kernel() { return library_gradient_kernels(); }
}  // namespace isotope::conform
