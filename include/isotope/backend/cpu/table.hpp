#pragma once
/// The code behind a target's kernel table: what to call for each entry.
#include <array>
#include <boost/mp11/list.hpp>
#include <concepts>
#include <span>

#include "../../plan/kernels.hpp"
#include "../../plan/layout.hpp"
#include "launch.hpp"

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {

struct entry {
  void (*run)(const launch&) = nullptr;
  block_function block = nullptr;
  tile_function tile = nullptr;
  void (*pack)(const view& weight, void* packed, thread_pool* pool) = nullptr;  // a gemm's: makes what kernel_info::packed counts
};
template <class K> constexpr entry entry_of() {
  entry e;
  if constexpr (requires(const launch& l) { K::run(l); }) e.run = &K::run;
  if constexpr (requires {
                  { &K::block } -> std::convertible_to<block_function>;
                })
    e.block = &K::block;
  if constexpr (requires {
                  { &K::tile } -> std::convertible_to<tile_function>;
                })
    e.tile = &K::tile;
  if constexpr (requires(const view& w) { K::pack(w, nullptr, nullptr); }) e.pack = &K::pack;
  return e;
}
/// The code of a target's kernels, indexed as kernel_table<T>. Never inlined: where the build has compiled it once (compiled.hpp), every
/// other translation unit calls that one.
template <Target T> ISOTOPE_NOINLINE std::span<const entry> code_of() {
  static constexpr auto entries = []<class... K>(boost::mp11::mp_list<K...>) {
    return std::array<entry, sizeof...(K)>{entry_of<K>()...};
  }(target_kernels<T>{});
  return entries;
}

/// A fused instruction with its code; `table` and `code` are of one target.
inline instruction resolve(const micro_op& m, std::span<const kernel_info> table, std::span<const entry> code, dtype program) {
  instruction r;
  const auto k = find_kernel(table, m.op, program);
  if (k >= 0) {
    r.run = code[std::size_t(k)].block;
    r.tile = code[std::size_t(k)].tile;
  }
  for (std::size_t i = 0; i < 3; ++i) {
    r.arg[i] = m.arg[i];
    r.args = std::int8_t(r.args + (m.arg[i] != -1 ? 1 : 0));
  }
  r.store = m.store;
  r.type = m.type;
  r.scalar = m.scalar;
  return r;
}

}  // namespace arch
}  // namespace isotope::cpu
