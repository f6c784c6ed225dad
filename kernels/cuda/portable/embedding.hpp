#pragma once
/// Looks up rows of a table by id. For the gradient, ids are sorted with their positions on the device, then the rows of each id are
/// added in order.
#include <isotope/kernels/cuda/portable/embedding.h>
#include <isotope/fatbins/embedding.hpp>
#include <isotope/fatbins/id_sort.hpp>
#include <isotope/kernels/cuda/reference/embedding.hpp>
#include <isotope/op/embedding.hpp>

#include <isotope/kernels/cuda/rows/rows.hpp>

namespace isotope::cuda {
namespace portable {

/// Sorts ids (n) into pairs (id, position), least significant digit first: two launches per digit, blocks of pairs in parallel.
struct id_sort {
  static constexpr std::int64_t pair_bytes = 8, few_blocks = 128, most_blocks = 4096, most_ids = std::int64_t(1) << 31;
  /// Pairs of a thread: more of them if there would be many blocks, each of which reads the counts of all.
  static constexpr std::int64_t items(std::int64_t n) {
    std::int64_t k = 1;
    while (k < gpu::sort_items && divide_up(n, k * gpu::sort_threads) > few_blocks) k *= 2;
    while (divide_up(n, k * gpu::sort_threads) > most_blocks) k *= 2;
    return k;
  }
  static constexpr std::int64_t blocks(std::int64_t n) { return divide_up(n, items(n) * gpu::sort_threads); }
  /// Enough for fewer ids, too, which may need more blocks.
  static constexpr std::int64_t scratch(std::int64_t n) {
    constexpr std::int64_t all_items = gpu::sort_items * gpu::sort_threads;
    const std::int64_t more = std::max(few_blocks, std::min(most_blocks, divide_up(n, all_items)));
    return 2 * pair_bytes * n + 4 * gpu::sort_digits * std::min(divide_up(n, gpu::sort_threads), more);
  }

  /// Returns the sorted pairs; ids outside [0, V) become V. Uses scratch(n) bytes at `scratch`.
  static range record(recording& r, const view& ids, std::int64_t V, std::uint64_t scratch) {
    constexpr int digit_bits = 8;
    static_assert(1 << digit_bits == gpu::sort_digits);
    const std::int64_t n = ids.dims.count();
    const range halves[2] = {{scratch, pair_bytes * n}, {scratch + std::uint64_t(pair_bytes * n), pair_bytes * n}};
    const range counts(scratch + std::uint64_t(2 * pair_bytes * n), 4 * gpu::sort_digits * blocks(n));
    range from = ids;
    int turn = 0;
    for (int shift = 0; shift == 0 || (V >> shift) != 0; shift += digit_bits, turn ^= 1) {
      const range& to = halves[turn];
      const gpu::id_sort_operands a{
          from.first, counts.first, to.first, n, std::uint32_t(V), shift, std::int32_t(blocks(n)), std::int32_t(items(n))};
      r.add(fatbins::id_sort, "id_count", a, per_block(blocks(n), gpu::sort_threads), {from}, {counts});
      r.add(fatbins::id_sort, "id_place", a, per_block(blocks(n), gpu::sort_threads), {from, counts}, {to});
      from = to;
    }
    return from;
  }
};

}  // namespace portable

template <GpuPrecision P> struct kernel<op::embedding, P, kernels::portable> {
  static constexpr std::int64_t scratch(const step_shapes& s) { return portable::scratch_below<op::embedding, P>(s); }
  static void record(const launch& l, recording& r) {
    const view &table = l.in[0], &ids = l.in[1], &y = l.out[0];
    if (y.dims.count() == 0) return;
    if (table.type != y.type || !portable::loads_as_f32(y.type))
      return portable::fall_through<op::embedding, P>(l, r, "embedding: the table has another format");
    const std::int64_t row = table.dims[1] * size_of(table.type);
    std::int64_t unit = 16;
    while (unit > 2 && (row % unit != 0 || table.at % std::uint64_t(unit) != 0 || y.at % std::uint64_t(unit) != 0)) unit /= 2;
    const std::int64_t units = y.dims.count() * size_of(y.type) / unit;
    const std::uint32_t nan = table.type == dtype::f32 ? 0x7fc00000u : table.type == dtype::f16 ? 0x7e007e00u : 0x7fc07fc0u;
    const gpu::embedding_operands a{table.at, ids.at, y.at, units, table.dims[0], std::int32_t(row / unit), std::int32_t(unit), nan};
    r.add(fatbins::embedding, "embedding", a, per_item(units), {table, ids}, {y});
  }
};

template <GpuPrecision P> struct kernel<op::embedding_grad, P, kernels::portable> {
  static constexpr std::int64_t scratch(const step_shapes& s) {
    return std::max(portable::id_sort::scratch(s.in[2].count()), portable::scratch_below<op::embedding_grad, P>(s));
  }
  static void record(const launch& l, recording& r) {
    using portable::divide_up;
    constexpr portable::by_format functions{"embedding_grad_f32", "embedding_grad_bf16", "embedding_grad_f16"};
    const view &dy = l.in[1], &ids = l.in[2], &into = l.out[0];
    const std::int64_t n = ids.dims.count(), V = into.dims[0], C = into.dims[1];
    if (n * V * C == 0) return;
    if (into.type != dtype::f32 || n >= portable::id_sort::most_ids || V >= portable::id_sort::most_ids)
      return portable::fall_through<op::embedding_grad, P>(l, r, "embedding_grad: too many ids, or sums that are not f32");
    const range pairs = portable::id_sort::record(r, ids, V, l.scratch);
    const std::int64_t searches = n > gpu::id_long_run ? divide_up(n, gpu::id_search) * divide_up(C, gpu::id_strip) : 0;
    const std::int64_t windows = divide_up(n, gpu::id_window) * divide_up(C, 4 * 256);
    const bool wide = C % portable::vector_elems(dy.type) == 0 && portable::all_aligned(dy, into);
    const gpu::embedding_grad_operands a{into.at, dy.at, pairs.first, n, V, C, searches, wide};
    r.add(fatbins::embedding, functions.of(dy.type), a, per_block(searches + windows, 256), {dy, pairs, into}, {into});
  }
};

}  // namespace isotope::cuda
