#pragma once
// The operands of attention of packed sequences as kernels receive them; included by host and device code.
#include "heads.h"

namespace isotope::cuda::gpu {

struct packed_heads_arguments {
  attention_arguments heads;  // of all rows as if they were one sequence: B is 1, S and T are the number of rows
  std::uint64_t starts;       // (sequences + 1) i32
  std::int64_t sequences;
};

/// The blocks with `own` rows of a head that packed sequences take at most: see place_of_packed.
constexpr std::int64_t packed_blocks(std::int64_t rows, std::int64_t sequences, std::int64_t own) { return rows / own + sequences + 2; }

}  // namespace isotope::cuda::gpu
