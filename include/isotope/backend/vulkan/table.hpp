#pragma once
/// The code behind a target's kernel table: what records each entry.
#include <array>
#include <boost/mp11/list.hpp>
#include <span>

#include "../../core/config.hpp"
#include "../../plan/kernels.hpp"
#include "launch.hpp"

namespace isotope::vulkan {

using recorder = void (*)(const launch&, recording&);  // null: an instruction of fused bodies

template <class K> constexpr recorder recorder_of() {
  if constexpr (requires(const launch& l, recording& r) { K::record(l, r); }) return &K::record;
  else return nullptr;
}
/// Indexed as kernel_table<T>. Never inlined: where the build has compiled it once (compiled.hpp), every other translation unit calls that one.
template <Target T> ISOTOPE_NOINLINE std::span<const recorder> code_of() {
  static constexpr auto entries = []<class... K>(boost::mp11::mp_list<K...>) {
    return std::array<recorder, sizeof...(K)>{recorder_of<K>()...};
  }(target_kernels<T>{});
  return entries;
}

}  // namespace isotope::vulkan
