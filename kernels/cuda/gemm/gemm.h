#pragma once
// The arguments of all matmul kernels; included by host and device code.
#include "../device/body.h"

namespace isotope::cuda::gpu {

/// Lines of adjacent elements, `line` elements apart. They run across K (along M or N) if the kernel's memory order says so, otherwise
/// along K.
struct gemm_operand {
  std::uint64_t at;  // of the first batch
  std::int64_t line;
  std::int64_t outer, inner;  // strides of the batch axes
  std::int32_t type;
  std::int32_t aligned;  // every line starts at a multiple of 16 bytes
};

inline constexpr int chain_steps = 4, chain_operands = 2;

/// One instruction of a body that is a chain: it works on the previous value and at most one operand.
struct chain_step {
  std::uint8_t code, type;    // as in gpu::instruction
  std::int8_t operand;        // in gemm::operands, or -1
  std::int8_t operand_first;  // the operand is the first argument, the value the second; otherwise the reverse
  std::int8_t both;           // both arguments are the value
  std::int8_t store;          // the output that the result is written to, or -1
  float constant;
};
/// An operand of a chain: either dense like the result, or one row for all rows, or one element for all.
struct chain_operand {
  std::uint64_t at;
  std::int32_t type;
  std::int32_t row, column;  // 1: the address depends on the row (and batch), on the column
};

/// How a kernel finishes a sum.
inline constexpr int finish_partial = 0;  // writes it to y, in f32, as one part of K
inline constexpr int finish_store = 1;    // rounds it to `product_type`, and writes or adds it to y
inline constexpr int finish_chain = 2;    // runs the chain on it
inline constexpr int finish_body = 3;     // runs the interpreter on it

/// The cases that have code of their own (gemm/finish_tile.cuh); all formats are those that the name says, and c is not read.
inline constexpr int case_other = 0, case_partial = 1, case_store_bf16 = 2, case_store_f32 = 3, case_add_f32 = 4;
/// Bodies of bf16: operand 0 is the bias or the dense operand, operand 1 the residual behind a bias.
inline constexpr int case_bias = 5, case_residual = 6, case_bias_residual = 7, case_bias_gelu = 8, case_gelu_grad = 9;
/// A chain whose formats are all f32 (portable/matmul_whole.cuh).
inline constexpr int case_chain_f32 = 10;
/// As case_bias_gelu, for the other form of GELU.
inline constexpr int case_bias_gelu_erf = 11;

/// A normalisation of the rows of A before the product, as norm.cu computes it: A is then x. Weight and bias are bf16 (depth).
struct gemm_norm {
  std::uint64_t weight, bias;
  std::int32_t on, centered;
  float epsilon;
};

/// y[b, m, n] = alpha sum_k a[b, m, k] b[b, k, n] + beta c[b, m, n]. y is dense.
struct gemm {
  gemm_operand a, b;
  std::uint64_t c, y;
  std::int64_t c_row, c_column, c_outer, c_inner;
  std::int64_t elements;              // of y
  std::int64_t before;                // batches of y that precede batch 0
  std::int32_t rows, columns, depth;  // M, N, K
  std::int32_t inner;                 // batches of the inner axis
  std::int32_t first;                 // the batch of blocks with z = 0
  std::int32_t batches;               // of all launches
  std::int32_t parts, part_depth;     // of K; the depth of a part
  std::int32_t y_type, product_type, c_type;
  std::int32_t finish, accumulate;
  std::int32_t fast;     // the case, if it has code of its own
  std::int32_t eights;   // columns are finished eight at a time: rows of y and of operands of the chain are aligned to 16 bytes
  std::int32_t a_cross;  // lines of A run along M, for kernels without a fixed memory order
  std::int32_t teams;    // warps of a block that share columns, each with a part of K: 1, 2, 4 or 8 (matmul_rows.cu)
  std::int32_t early;    // the kernel may start before those that it depends on have ended
  std::int32_t swapped;  // the kernel works on the transposed product: y[b, n, m]
  float alpha, beta;     // beta = 0: c is not read
  std::int32_t steps;
  chain_step chain[chain_steps];
  chain_operand operands[chain_operands];
  std::uint64_t out[body_outputs];
  std::int32_t out_type[body_outputs];
  gpu::body body;
  gemm_norm norm;  // only of matmul_rows_mma_short_* and _long_*
};

}  // namespace isotope::cuda::gpu
