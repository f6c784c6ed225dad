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

/// A step before another one, and what would record it alone.
struct earlier_step {
  const op_info& op;
  record_function code;
  const launch& given;
  std::uint32_t read_later;  // bit k: something after the other step reads result k; what is not read need not be stored
  /// Whether it is a step of Op that kernel K would record.
  template <class Op, class K> bool is() const { return op.name == Op::name && code == &K::record; }
};
/// Records a step together with the step before it. Returns false, and records nothing, if it cannot.
using pair_function = bool (*)(const earlier_step& before, const launch& l, recording& r);

template <class K> constexpr pair_function pair_function_of() {
  if constexpr (requires(const earlier_step& before, const launch& l, recording& r) { K::record_after(before, l, r); })
    return &K::record_after;
  else return nullptr;
}
/// What a target's kernels record together with the step before, indexed as kernel_table<T>; null: nothing. Compiled once, as code_of.
template <Target T> ISOTOPE_NOINLINE std::span<const pair_function> pairs_of() {
  static constexpr auto entries = []<class... K>(boost::mp11::mp_list<K...>) {
    return std::array<pair_function, sizeof...(K)>{pair_function_of<K>()...};
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
