#pragma once
/// The definitions behind registry.hpp: to be included by one source file of a program. An incomplete specification does not compile.
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
  return std::array<gradient_kernel_names, sizeof...(G)>{gradient_kernel_names{G::kernel::name, G::of::name}...};
}
}  // namespace src_detail

std::span<const spec> every_spec() {
  static constexpr auto all = src_detail::sorted_specs(specified_ops{});
  return all;
}
std::span<const gradient_kernel_names> every_gradient_kernel() {
  static constexpr auto all = src_detail::named(gradient_kernels{});
  return all;
}

}  // namespace isotope::conform
