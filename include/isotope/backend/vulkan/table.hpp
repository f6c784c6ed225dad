#pragma once
/// The code behind a target's kernel table: what records each entry.
#include <array>
#include <boost/mp11/algorithm.hpp>
#include <boost/mp11/list.hpp>
#include <span>

#include "../../core/compiler.hpp"
#include "../../plan/kernels.hpp"
#include "launch.hpp"

namespace isotope::vulkan {

using record_function = void (*)(const launch&, recording&);  // null: an instruction of fused bodies

template <class K> constexpr record_function record_function_of() {
  if constexpr (requires(const launch& l, recording& r) { K::record(l, r); }) return &K::record;
  else return nullptr;
}
/// Indexed as kernel_table<T>. Never inlined: where the build has compiled it once (compiled.hpp), every other translation unit calls that one.
template <Target T> ISOTOPE_NOINLINE std::span<const record_function> code_of() {
  static constexpr auto entries = []<class... K>(boost::mp11::mp_list<K...>) {
    return std::array<record_function, sizeof...(K)>{record_function_of<K>()...};
  }(target_kernels<T>{});
  return entries;
}

template <class K> using is_emitted = std::is_base_of<emitted_instruction, K>;
/// The instructions that a target adds to those of the library.
template <Target T> std::span<const spirv::custom_instruction> custom_instructions_of() {
  static constexpr auto all = []<class... K>(boost::mp11::mp_list<K...>) {
    return std::array<spirv::custom_instruction, sizeof...(K)>{
        spirv::custom_instruction{&info<typename kernel_traits<K>::op>, &K::formula}...};
  }(boost::mp11::mp_copy_if<typename T::extra_kernels, is_emitted>{});
  return all;
}

}  // namespace isotope::vulkan
