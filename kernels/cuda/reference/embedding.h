#pragma once
// Arguments of reference/embedding.cu.
#include <cstdint>

namespace isotope::cuda::gpu {

struct reference_embedding_arguments {
  std::uint64_t table;  // (V, C)
  std::uint64_t ids;    // (rows) i32
  std::uint64_t y;      // (rows, C)
  std::int64_t rows, V, C;
  std::int32_t table_type, y_type;
};
struct reference_embedding_grad_arguments {
  std::uint64_t into;  // (V, C)
  std::uint64_t dy;    // (rows, C)
  std::uint64_t ids;   // (rows) i32
  std::int64_t rows, V, C;
  std::int32_t into_type, dy_type;
};

}  // namespace isotope::cuda::gpu
