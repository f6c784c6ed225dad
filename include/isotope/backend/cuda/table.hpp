#pragma once
/// The functions behind a target's kernel table: what records each entry.
#include <array>
#include <boost/mp11/algorithm.hpp>
#include <boost/mp11/list.hpp>
#include <span>

#include "../../core/compiler.hpp"
#include "../../plan/kernels.hpp"
#include "launch.hpp"

namespace isotope::cuda {

using record_function = void (*)(const launch&, recording&);  // null: the op runs only as an instruction of fused bodies

template <class K> constexpr record_function record_function_of() {
  if constexpr (requires(const launch& l, recording& r) { K::record(l, r); }) return &K::record;
  else return nullptr;
}
/// The recorders of a target's kernels, indexed as kernel_table<T>. It is never inlined, so that translation units use the one copy that the build compiled
/// (compiled.hpp).
template <Target T> ISOTOPE_NOINLINE std::span<const record_function> code_of() {
  static constexpr auto entries = []<class... K>(boost::mp11::mp_list<K...>) {
    return std::array<record_function, sizeof...(K)>{record_function_of<K>()...};
  }(target_kernels<T>{});
  return entries;
}

}  // namespace isotope::cuda
