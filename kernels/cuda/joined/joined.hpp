#pragma once
/// Dispatches that become one: rows that are appended to caches by the kernel that attends to them, and rows that are normalised by the product that reads them.
/// Results have the same bits.
#include <cstring>
#include <iterator>
#include <optional>
#include <vector>

#include <isotope/kernels/cuda/attention/cached.h>
#include <isotope/kernels/cuda/gemm/gemm.h>
#include <isotope/kernels/cuda/portable/cache_append.h>
#include <isotope/kernels/cuda/portable/norm.h>
#include <isotope/backend/cuda/launch.hpp>
#include <isotope/fatbins/attention_cached_hopper.hpp>
#include <isotope/fatbins/cache_append.hpp>
#include <isotope/fatbins/matmul_rows_mma.hpp>
#include <isotope/fatbins/norm.hpp>

namespace isotope::cuda {

/// The arguments of a dispatch of this code, or nothing.
template <class Arguments> std::optional<Arguments> arguments_in(const dispatch& d, const device_code& code) {
  if (d.code != &code || d.arguments.size() != sizeof(Arguments)) return {};
  Arguments a;
  std::memcpy(&a, d.arguments.data(), sizeof a);
  return a;
}

/// Removes each cache_append whose rows the next attention_cached of the same caches and tokens can append, if nothing between them touches what it does.
inline void join_appends(std::vector<dispatch>& all) {
  for (std::size_t j = 0; j < all.size(); ++j) {
    auto to = arguments_in<gpu::cached_heads>(all[j], fatbins::attention_cached_hopper);
    if (!to || to->k != 0 || to->N > gpu::cached_most_appended) continue;
    for (std::size_t i = j; i-- > 0;) {
      const auto from = arguments_in<gpu::cache_append_arguments>(all[i], fatbins::cache_append);
      if (!from || all[i].function != "cache_append_16" || from->keys != to->keys || from->values != to->values ||
          from->sequence != to->sequence || from->position != to->position || from->N != to->N) {
        continue;
      }
      bool free = true;
      for (std::size_t k = i + 1; k < j; ++k) free = free && !conflict(all[i], all[k]);
      if (!free) break;
      const std::int64_t elems = to->D / from->D;  // of a unit
      to->k = from->k;
      to->v = from->v;
      to->k_stride = from->k_stride * elems;
      to->v_stride = from->v_stride * elems;
      std::memcpy(all[j].arguments.data(), &*to, sizeof *to);
      all[j].reads.insert(all[j].reads.end(), all[i].reads.begin(), all[i].reads.end());
      all[j].writes.insert(all[j].writes.end(), all[i].writes.begin(), all[i].writes.end());
      all[j].joined = all[i].step;
      all.erase(all.begin() + std::ptrdiff_t(i));
      --j;
      break;
    }
  }
}

namespace joined {
inline bool touches(const std::vector<range>& all, const range& r) {
  for (const range& x : all)
    if (x.overlaps(r)) return true;
  return false;
}
/// Whether nothing behind dispatch i but dispatch `reader` reads what it has written to `r`.
inline bool read_once(const std::vector<dispatch>& all, std::size_t i, std::size_t reader, const range& r) {
  std::vector<range> left{r}, rest;  // what no later dispatch has overwritten
  for (std::size_t k = i + 1; k < all.size() && !left.empty(); ++k) {
    for (const range& x : left)
      if (k != reader && touches(all[k].reads, x)) return false;
    for (const range& w : all[k].writes) {
      rest.clear();
      for (const range& x : left) {
        if (!x.overlaps(w)) rest.push_back(x);
        if (x.overlaps(w) && x.first < w.first) rest.emplace_back(x.first, std::int64_t(w.first - x.first));
        if (x.overlaps(w) && w.end < x.end) rest.emplace_back(w.end, std::int64_t(x.end - w.end));
      }
      left.swap(rest);
    }
  }
  return true;
}
}  // namespace joined

/// Removes each normalisation whose rows only one product with few rows reads, and which the product can compute in each of its blocks. `kept`: bytes that are
/// read after the run.
inline void join_norms(std::vector<dispatch>& all, const range& kept) {
  constexpr std::int64_t line_pad = 8, most_bytes = 48 << 10, own_bytes = 16 << 10;  // own: shared memory of the product itself
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto from = arguments_in<gpu::norm_operands>(all[i], fatbins::norm);
    if (!from || !all[i].function.starts_with("norm_up_to_") || !all[i].function.ends_with("_bf16")) continue;
    constexpr auto bf16 = std::int32_t(dtype::bf16);
    if (from->weight_type != bf16 || (from->centered != 0 && from->bias_type != bf16)) continue;
    const range x(from->x, from->rows * from->C * 2), y(from->y, x.bytes());
    for (std::size_t j = i + 1; j < all.size(); ++j) {
      if (!joined::touches(all[j].reads, y)) {
        if (joined::touches(all[j].writes, y) || conflict(all[i], all[j])) break;
        continue;
      }
      auto to = arguments_in<gpu::gemm>(all[j], fatbins::matmul_rows_mma);
      const bool takes =
          to && (all[j].function.starts_with("matmul_rows_mma_short_") || all[j].function.starts_with("matmul_rows_mma_long_"));
      const std::int64_t bytes = 2 * from->rows * (from->C + line_pad);
      if (!takes || to->norm.on != 0 || to->a.at != from->y || to->rows != from->rows || to->depth != from->C ||
          (from->rows > 1 && to->a.line != from->C) || to->parts != 1 || to->batches != 1 || bytes + own_bytes > most_bytes ||
          joined::touches(all[j].writes, x) || y.overlaps(kept) || !joined::read_once(all, i, j, y))
        break;
      bool free = true;
      for (const range& w : all[i].writes) free = free && joined::read_once(all, i, j, w) && !w.overlaps(kept);
      if (!free) break;
      to->norm = {from->weight, from->bias, 1, from->centered, from->epsilon};
      to->a.at = from->x;
      to->a.line = from->C;
      to->a.aligned = 1;
      std::memcpy(all[j].arguments.data(), &*to, sizeof *to);
      all[j].count.shared_bytes = bytes;
      auto& reads = all[j].reads;
      std::erase_if(reads, [&](const range& r) { return r.first == y.first && r.end == y.end; });
      reads.insert(reads.end(), all[i].reads.begin(), all[i].reads.end());
      all[j].joined = all[i].step;
      all.erase(all.begin() + std::ptrdiff_t(i));
      --i;
      break;
    }
  }
}

}  // namespace isotope::cuda
