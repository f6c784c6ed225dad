#pragma once
/// Weights in blocks (core/quantized.hpp) as operands of cases: matrices whose blocks run along the axis that is the last one in memory.
#include "../core/quantized.hpp"
#include "array.hpp"
#include "test_case.hpp"

namespace isotope::conform {

/// A matrix whose rows in memory, N of K elements, are in blocks.
struct block_rows {
  std::int64_t N, K;
  bool transposed;  // the op sees it as (K, N)

  block_rows(const shape& dims, const memory_order& order) : N(dims[order[0]]), K(dims[order[1]]), transposed(order[0] == 1) {}
  extents strides() const { return transposed ? extents{1, K} : extents{K, 1}; }
  std::size_t place(std::int64_t n, std::int64_t k) const { return std::size_t(transposed ? k * N + n : n * K + k); }
  /// Calls f(n, k, block) for elements k to k + 31 of each row n of w, quantised.
  template <class F> void for_each(const array& w, F&& f) const {
    for (std::int64_t n = 0; n < N; ++n)
      for (std::int64_t k = 0; k < K; k += quantized::block) {
        float x[quantized::block];
        for (std::int64_t j = 0; j < quantized::block; ++j) x[j] = float(w.at[place(n, k + j)]);
        f(n, k, quantized::quantize(w.type, x));
      }
  }
};

/// Whether an operand can be in blocks: a matrix with rows of whole blocks.
inline bool fits_blocks(const operand_recipe& x) {
  if (x.dims.rank != 2) return false;
  const block_rows r(x.dims, x.order);
  return r.K > 0 && r.K % quantized::block == 0;
}
/// Rounds each number as its block stores it.
inline void round_in_blocks(array& w, const memory_order& order) {
  const block_rows r(w.dims, order);
  r.for_each(w, [&](std::int64_t n, std::int64_t k, const quantized::values& b) {
    for (std::int64_t j = 0; j < quantized::block; ++j) w.at[r.place(n, k + j)] = double(b[j]);
  });
}
/// Writes rounded numbers to memory as weights lie there; the bytes of rows that pad the last panel stay as they are.
inline void write_in_blocks(const array& w, const memory_order& order, std::byte* to) {
  const block_rows r(w.dims, order);
  r.for_each(w, [&](std::int64_t n, std::int64_t k, const quantized::values& b) {
    quantized::put(w.type, b, to + quantized::record_at(w.type, r.K, n, k), n % quantized::panel_rows);
  });
}

}  // namespace isotope::conform
