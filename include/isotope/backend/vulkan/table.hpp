#pragma once
/// The functions behind a target's kernel table: what records each entry.
#include <array>
#include <boost/mp11/algorithm.hpp>
#include <boost/mp11/list.hpp>
#include <span>

#include "../../core/compiler.hpp"
#include "../../plan/kernels.hpp"
#include "launch.hpp"

namespace isotope::vulkan {

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

template <class K> using is_emitted = std::is_base_of<emitted_instruction, K>;
/// The element-wise ops of a target that have a formula of their own: some of the library, and those that the target adds.
template <Target T> std::span<const spirv::custom_instruction> custom_instructions_of() {
  static constexpr auto all = []<class... K>(boost::mp11::mp_list<K...>) {
    return std::array<spirv::custom_instruction, sizeof...(K)>{
        spirv::custom_instruction{&info<typename kernel_traits<K>::op>, &K::formula}...};
  }(boost::mp11::mp_copy_if<target_kernels<T>, is_emitted>{});
  return all;
}

}  // namespace isotope::vulkan
