#pragma once
/// The functions behind a target's kernel table: what to call for each entry.
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
  void (*consider)(const launch&) = nullptr;  // makes the choice of `run` among variants; null: there are none
  block_function block = nullptr;
  tile_function tile = nullptr;
  /// Of a matmul: writes the pre-packed copy of a weight, whose size kernel_info::packed gives.
  void (*pack)(const view& weight, void* packed, thread_pool* pool) = nullptr;
  /// Likewise, of the size that kernel_info::packed_transposed gives.
  void (*pack_transposed)(const view& weight, void* packed, thread_pool* pool, std::int64_t elements) = nullptr;
};
template <class K> constexpr entry entry_of() {
  entry e;
  if constexpr (requires(const launch& l) { K::run(l); }) e.run = &K::run;
  if constexpr (requires(const launch& l) { K::consider(l); }) e.consider = &K::consider;
  if constexpr (requires {
                  { &K::block } -> std::convertible_to<block_function>;
                })
    e.block = &K::block;
  if constexpr (requires {
                  { &K::tile } -> std::convertible_to<tile_function>;
                })
    e.tile = &K::tile;
  if constexpr (requires(const view& w) { K::pack(w, nullptr, nullptr); }) e.pack = &K::pack;
  if constexpr (requires(const view& w) { K::pack_transposed(w, nullptr, nullptr, 0); }) e.pack_transposed = &K::pack_transposed;
  return e;
}
/// The code of a target's kernels, indexed as kernel_table<T>. It is never inlined, so that translation units use the one copy that the build compiled
/// (compiled.hpp).
template <Target T> ISOTOPE_NOINLINE std::span<const entry> code_of() {
  static constexpr auto entries = []<class... K>(boost::mp11::mp_list<K...>) {
    return std::array<entry, sizeof...(K)>{entry_of<K>()...};
  }(target_kernels<T>{});
  return entries;
}

/// A fused instruction with the code that runs it; `table` and `code` belong to the same target.
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
