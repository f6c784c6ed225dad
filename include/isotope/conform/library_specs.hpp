#pragma once
/// The library's specifications: one source file of a program includes this and passes them to registry.hpp. An incomplete one does not compile.
#include <algorithm>
#include <array>

#include "op/all.hpp"
#include "op_list.hpp"
#include "registry.hpp"

namespace isotope::conform {

namespace src_detail {
template <class... Op> constexpr auto sorted_specs(boost::mp11::mp_list<Op...>) {
  std::array<spec, sizeof...(Op)> all{spec_of<Op>()...};
  std::sort(all.begin(), all.end(), [](const spec& a, const spec& b) { return a.name < b.name; });
  return all;
}
template <class... G> constexpr auto named(boost::mp11::mp_list<G...>) {
  return std::array<gradient_kernel_names, sizeof...(G)>{gradient_kernel_names{G::name, G::gradient_of::name}...};
}
}  // namespace src_detail

inline std::span<const spec> library_specs() {
  static constexpr auto all = src_detail::sorted_specs(specified_ops{});
  return all;
}
inline std::span<const gradient_kernel_names> library_gradient_kernels() {
  static constexpr auto all = src_detail::named(gradient_kernels{});
  return all;
}

}  // namespace isotope::conform
