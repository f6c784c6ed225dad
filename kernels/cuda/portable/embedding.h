#pragma once
// The operands of embedding.cu and id_sort.cu.
#include <cstdint>

namespace isotope::cuda::gpu {

struct embedding_operands {
  std::uint64_t table, ids, y;  // (V, C), (rows) i32, (rows, C)
  std::int64_t units, V;        // units of `unit` bytes in y
  std::int32_t per_row, unit;   // units of a row
  std::uint32_t no_row;         // NaN in the format of the table, repeated to 32 bits
};

/// Ids with their positions while they are sorted: a pass orders them by one digit of the id and keeps the order of equal digits, so that
/// all passes together order by id, then position. Ids outside the table count as V and come last.
struct id_sort_operands {
  std::uint64_t from, counts, to;  // (n) ids in the first pass, then pairs; (blocks, digits) u32; (n) pairs
  std::int64_t n;
  std::uint32_t V;
  std::int32_t shift, blocks, items;  // items: pairs of a thread
};
inline constexpr int sort_threads = 256, sort_digits = 256, sort_items = 16;

struct embedding_grad_operands {
  std::uint64_t into, dy, pairs;  // (V, C) f32, (n, C), (n) sorted pairs
  std::int64_t n, V, C;
  std::int64_t searches;  // blocks for long runs, one per window of the search and strip of columns
  std::int32_t wide;
};
/// Blocks own the runs of equal ids that start in their window of pairs; runs longer than long_run have blocks of their own, one for each
/// strip of columns, that look for them in windows of `search` pairs.
inline constexpr int id_window = 16, id_long_run = 128, id_search = 512, id_strip = 32;

}  // namespace isotope::cuda::gpu
