#pragma once
// The operands of cumsum.cu, prod.cu and top_k.cu.
#include <cstdint>

namespace isotope::cuda::gpu {

struct cumsum_operands {
  std::uint64_t x, y;  // (rows, n, inner), in one format
  std::int64_t rows, n, inner;
  std::int32_t team, reverse, wide;
};

struct prod_grad_operands {
  std::uint64_t x, dy, dx;  // (rows, n), (rows), (rows, n)
  std::uint64_t before;     // (rows, n) f32
  std::int64_t rows, n;
  std::int32_t team, dy_type, wide;
};

struct top_k_operands {
  std::uint64_t x;               // (rows, n)
  std::uint64_t values, places;  // (rows, k), places i32
  std::int64_t rows;
  std::int32_t n, k, team;
};

}  // namespace isotope::cuda::gpu
