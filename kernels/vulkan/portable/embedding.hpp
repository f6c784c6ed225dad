#pragma once
/// Looks up rows of a table by id. For the gradient, ids are sorted with their positions on the device, then each id's rows are added in order.
#include <bit>

#include <isotope/kernels/vulkan/reference/embedding.hpp>
#include <isotope/op/embedding.hpp>
#include <isotope/shaders/embedding.hpp>
#include <isotope/shaders/embedding_grad.hpp>
#include <isotope/shaders/id_count.hpp>
#include <isotope/shaders/id_place.hpp>

#include <isotope/kernels/vulkan/rows/rows.hpp>

namespace isotope::vulkan {
namespace portable {

/// Sorts ids (n) into pairs (id, position), least significant digit first: two dispatches per digit, blocks of pairs in parallel.
struct id_sort {
  static constexpr std::int64_t pair_bytes = 8, least_block = 128 * 4, most_digits = 256, most_blocks = 4096;
  static constexpr std::int64_t counts_bytes(std::int64_t n) { return 4 * most_digits * std::min(most_blocks, divide_up(n, least_block)); }
  static constexpr std::int64_t scratch(std::int64_t n) { return 2 * pair_bytes * n + counts_bytes(n); }

  /// Returns the sorted pairs; ids outside [0, V) become V. Uses scratch(n) bytes at `scratch`.
  static range record(const launch& l, recording& r, const view& ids, std::int64_t V, std::uint64_t scratch) {
    const std::int64_t n = ids.dims.count(), workgroup = portable::workgroup(*l.device, 256);
    // There are no more digits than invocations, and the counters of all subgroups together stay within 8 KiB of shared memory.
    const int digit_bits = l.device->subgroup >= 32 && workgroup >= 256 ? 8 : 6;
    std::int64_t items = 4;
    while (items < 16 && divide_up(n, items * workgroup) > 64) items *= 2;
    while (divide_up(n, items * workgroup) > most_blocks) items *= 2;
    const std::int64_t blocks = divide_up(n, items * workgroup);
    const range halves[2] = {{scratch, pair_bytes * n}, {scratch + std::uint64_t(pair_bytes * n), pair_bytes * n}};
    const range counts(scratch + std::uint64_t(2 * pair_bytes * n), 4 * blocks << digit_bits);
    range from = ids;
    int turn = 0;
    for (int shift = 0; shift == 0 || (V >> shift) != 0; shift += digit_bits, turn ^= 1) {
      const range& to = halves[turn];
      const constants c = constants{word(workgroup), l.device->subgroup}.add(digit_bits).add(items).add(shift == 0);
      const struct {
        std::uint64_t from, counts;
        std::uint32_t n, V, shift;
      } count{from.first, counts.first, word(n), word(V), word(shift)};
      r.add(shaders::id_count, c, count, groups{word(blocks)}, {from}, {counts});
      const struct {
        std::uint64_t from, counts, to;
        std::uint32_t n, V, shift, blocks;
      } place{from.first, counts.first, to.first, word(n), word(V), word(shift), word(blocks)};
      r.add(shaders::id_place, c, place, groups{word(blocks)}, {from, counts}, {to}).subgroup = l.device->subgroup;
      from = to;
    }
    return from;
  }
};

/// The workgroups of embedding_grad.comp; these are its constants.
struct id_runs {
  static constexpr std::int64_t window = 16, long_run = 128, search = 512, strip = 32;
  static constexpr std::int64_t widest =
      192;  // a workgroup of 256 would need all 16 KiB of shared memory that devices guarantee for its tile
};

}  // namespace portable

template <class P> struct kernel<op::embedding, P, kernels::portable> {
  static constexpr std::int64_t scratch(const step_shapes& s) { return portable::scratch_below<op::embedding, P>(s); }
  static void record(const launch& l, recording& r) {
    const view &table = l.in[0], &ids = l.in[1], &y = l.out[0];
    if (y.dims.count() == 0) return;
    if (table.type != y.type) return portable::fall_through<op::embedding, P>(l, r, "embedding: the table has another format");
    const std::int64_t row = table.dims[1] * size_of(table.type);
    std::int64_t unit = 16;
    while (unit > 2 && (row % unit != 0 || table.at % std::uint64_t(unit) != 0 || y.at % std::uint64_t(unit) != 0)) unit /= 2;
    const std::int64_t units = y.dims.count() * size_of(y.type) / unit;
    const std::uint32_t nan = table.type == dtype::f32 ? 0x7fc00000u : table.type == dtype::f16 ? 0x7e007e00u : 0x7fc07fc0u;
    const struct {
      std::uint64_t table, ids, y;
      std::uint32_t units, V;
    } push{table.at, ids.at, y.at, portable::word(units), portable::word(table.dims[0])};
    r.add(shaders::embedding, constants{256, l.device->subgroup}.add(unit).add(row / unit).add(nan), push, per_invocation(units, 256),
          {table, ids}, {y});
  }
};

template <class P> struct kernel<op::embedding_grad, P, kernels::portable> {
  static constexpr std::int64_t scratch(const step_shapes& s) {
    return std::max(portable::id_sort::scratch(s.in[2].count()), portable::scratch_below<op::embedding_grad, P>(s));
  }
  static void record(const launch& l, recording& r) {
    using portable::id_runs, portable::divide_up, portable::word;
    const view &dy = l.in[1], &ids = l.in[2], &into = l.out[0];
    const std::int64_t n = ids.dims.count(), V = into.dims[0], C = into.dims[1];
    if (n * V * C == 0) return;
    const range pairs = portable::id_sort::record(l, r, ids, V, l.scratch);
    const std::int64_t blocks = divide_up(C, 4), workgroup = portable::round_up(divide_up(blocks, divide_up(blocks, id_runs::widest)), 32);
    const std::int64_t searches = n > id_runs::long_run ? divide_up(n, id_runs::search) * divide_up(C, id_runs::strip) : 0;
    const std::int64_t windows = divide_up(n, id_runs::window) * divide_up(blocks, workgroup);
    const bool wide = C % 4 == 0 && portable::all_aligned(dy, into);
    const struct {
      std::uint64_t into, dy, pairs;
      std::uint32_t n, V, C, searches;
    } push{into.at, dy.at, pairs.first, word(n), word(V), word(C), word(searches)};
    r.add(shaders::embedding_grad, constants{word(workgroup), l.device->subgroup}.add(wide).add(dy.type), push,
          cover(searches + windows, 1), {dy, pairs, into}, {into});
  }
};

}  // namespace isotope::vulkan
