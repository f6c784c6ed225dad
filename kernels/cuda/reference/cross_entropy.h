#pragma once
// Arguments of reference/cross_entropy.cu.
#include <cstdint>

namespace isotope::cuda::gpu {

struct cross_entropy_arguments {
  std::uint64_t logits;   // (rows, N); the first V of each row are classes
  std::uint64_t targets;  // (rows) i32; a row counts if its target is a class
  std::uint64_t tops;     // (rows) f32: the largest logit
  std::uint64_t sums;     // (rows) f32: of e^(logit - top)
  std::uint64_t losses;   // (rows) f64, scratch
  std::uint64_t loss;     // () f32
  std::int64_t rows, N, V;
  std::int32_t type, loss_type;
};
struct cross_entropy_grad_arguments {
  std::uint64_t logits, targets, tops, sums;
  std::uint64_t dloss;    // () f32
  std::uint64_t counted;  // () f64, scratch: the number of rows that count
  std::uint64_t dx;       // (rows, N), zeros behind the classes
  std::int64_t rows, N, V;
  std::int64_t all, first;  // targets are classes of `all`, of which column 0 is class `first`
  std::int32_t type, dx_type, dloss_type;
};

}  // namespace isotope::cuda::gpu
