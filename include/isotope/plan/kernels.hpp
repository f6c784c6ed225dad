#pragma once
/// Kernel tables: a backend's list of kernel types as the planner and the executor see it.
#include <array>
#include <boost/mp11/algorithm.hpp>
#include <boost/mp11/list.hpp>
#include <type_traits>

#include "../core/target.hpp"

namespace isotope {

/// Matches `kernel<Op, P, Set>`, whatever backend's template it is.
template <class K> struct kernel_traits;
template <template <class, class, class> class K, class Op, class P, class Set> struct kernel_traits<K<Op, P, Set>> {
  using op = Op;
  using precision = P;
  using set = Set;
};
template <class K> constexpr kernel_info describe_kernel() {
  using traits = kernel_traits<K>;
  kernel_info r{.op = &info<typename traits::op>, .precision = traits::precision::type, .set = traits::set::name};
  if constexpr (requires { K::inplace; }) r.inplace = K::inplace;
  if constexpr (requires { K::epilogue; }) r.epilogue = K::epilogue;
  if constexpr (requires { K::outside_epilogues; }) r.outside_epilogues = K::outside_epilogues;
  if constexpr (requires(const step_shapes& s) { K::scratch(s); }) r.scratch = &K::scratch;
  if constexpr (requires(const step_shapes& s) { K::packed(s); }) r.packed = &K::packed;
  if constexpr (requires(const step_shapes& s) { K::packed_transposed(s); }) r.packed_transposed = &K::packed_transposed;
  if constexpr (requires { K::packs; }) r.packs = K::packs;
  if constexpr (requires { K::reads_blocks; }) r.reads_blocks = K::reads_blocks;
  if constexpr (requires { K::packs_blocks; }) r.packs_blocks = K::packs_blocks;
  if constexpr (requires { K::counts_all_elements; }) r.counts_all_elements = K::counts_all_elements;
  if constexpr (requires { K::takes_addend; }) r.takes_addend = K::takes_addend;
  if constexpr (requires(const step_shapes& s) { K::column_sums(s, std::span<const micro_op>{}, 0); }) r.column_sums = &K::column_sums;
  return r;
}

namespace plan_detail {
template <class Set> struct in_set {
  template <class K> using fn = std::is_same<typename kernel_traits<K>::set, Set>;
};
template <class P> struct of_precision {
  template <class K> using fn = std::is_same<typename kernel_traits<K>::precision, P>;
};
template <class L, class Set, class T>
using only = std::conditional_t<(Set::rank <= T::kernel_set::rank), boost::mp11::mp_copy_if_q<L, in_set<Set>>, boost::mp11::mp_list<>>;
template <class L, class P> using precise = boost::mp11::mp_copy_if_q<L, of_precision<P>>;
}  // namespace plan_detail

/// The kernels that a target may run, best first: its own additions, then native, portable and reference, starting at the target's set.
template <Target T>
using target_kernels = boost::mp11::mp_append<
    plan_detail::precise<typename T::extra_kernels, typename T::precision>,
    plan_detail::only<plan_detail::precise<typename T::backend::kernels, typename T::precision>, kernels::native, T>,
    plan_detail::only<plan_detail::precise<typename T::backend::kernels, typename T::precision>, kernels::portable, T>,
    plan_detail::only<plan_detail::precise<typename T::backend::kernels, typename T::precision>, kernels::reference, T>>;

/// The same as a table; plan::step::kernel indexes it.
template <Target T>
inline constexpr auto kernel_table = []<class... K>(boost::mp11::mp_list<K...>) {
  return std::array<kernel_info, sizeof...(K)>{describe_kernel<K>()...};
}(target_kernels<T>{});

/// All kernels of a backend in every precision: for messages that say what would work.
template <class B>
inline constexpr auto all_kernels = []<class... K>(boost::mp11::mp_list<K...>) {
  return std::array<kernel_info, sizeof...(K)>{describe_kernel<K>()...};
}(typename B::kernels{});

namespace plan_detail {
template <class Op, class P> struct runs {
  template <class K>
  using fn =
      std::bool_constant<std::is_same_v<typename kernel_traits<K>::op, Op> && std::is_same_v<typename kernel_traits<K>::precision, P>>;
};
}  // namespace plan_detail
/// Whether backend B has a kernel of Op in precision P.
template <class B, class Op, class P>
concept Supports = boost::mp11::mp_any_of_q<typename B::kernels, plan_detail::runs<Op, P>>::value;

/// What the matmuls of a target take as epilogues.
struct epilogue_rule {
  bool bodies = false;                        // the kernel of the gemm takes fused bodies
  std::span<const kernel_info> kernels = {};  // says which instructions stay outside epilogues; none: no instruction does

  constexpr bool takes(const op_info* instruction) const {
    for (const auto& k : kernels)
      if (k.op == instruction) return !k.outside_epilogues;
    return true;
  }
};
/// Returns the rule of kernel_table<T>.
constexpr epilogue_rule epilogues_of(std::span<const kernel_info> table, dtype precision) {
  for (const auto& k : table)
    if (k.op->body == body_role::host && k.precision == precision) return {k.epilogue, table};
  return {};
}

}  // namespace isotope
