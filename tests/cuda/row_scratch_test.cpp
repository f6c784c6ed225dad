/// Sizes that are chosen after planning are at most those of the plan, so scratch that is enough for a size must be enough for smaller ones.
#include <isotope/backend/cuda.hpp>
#include <isotope/isotope.hpp>
#include <isotope/kernels/cuda/portable/embedding.hpp>
#include <isotope/kernels/cuda/portable/layer_norm.hpp>

#include <gtest/gtest.h>

namespace isotope::cuda {
namespace row_scratch_test {

TEST(row_scratch, of_sorted_ids_is_enough_for_fewer_ids) {
  using portable::id_sort;
  std::int64_t most = 0, n = 0;
  for (std::int64_t ids = 1; ids < std::int64_t(1) << 30; ids += 1 + ids / 500) {
    const std::int64_t needed = 2 * id_sort::pair_bytes * ids + 4 * gpu::sort_digits * id_sort::blocks(ids);
    if (needed > most) most = needed, n = ids;
    ASSERT_GE(id_sort::scratch(ids), most) << ids << " ids have too little for " << n;
  }
}

TEST(row_scratch, of_weight_gradients_of_norms_is_enough_for_fewer_rows) {
  using portable::norm_parts;
  for (const std::int64_t C : {32, 128, 384, 768, 2304, 9000})
    for (const std::int64_t vector : {4, 8})
      for (const std::int64_t multiprocessors : {1, 20, 132, 160}) {
        std::int64_t most = 0;
        for (std::int64_t rows = 1; rows < 20000; ++rows) {
          most = std::max(most, 4 * 2 * C * norm_parts::of(rows, C, vector, multiprocessors));
          ASSERT_GE(norm_parts::scratch(rows, C, 2), most) << rows << " rows of " << C << " columns, " << multiprocessors;
        }
      }
}

}  // namespace row_scratch_test
}  // namespace isotope::cuda
