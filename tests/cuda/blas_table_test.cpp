/// Our declarations of cuBLASLt against NVIDIA's header, where that is installed.
#include <gtest/gtest.h>

#include <isotope/backend/cuda/blas_library.hpp>

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>

namespace isotope::cuda {
namespace blas_table_test {

static_assert(sizeof(blas::algorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(blas::candidate) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(blas::candidate, workspace_bytes) == offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(blas::candidate, status) == offsetof(cublasLtMatmulHeuristicResult_t, state));
static_assert(offsetof(blas::candidate, waves) == offsetof(cublasLtMatmulHeuristicResult_t, wavesCount));

template <class Ours, class Theirs> void same(Ours a, Theirs b) { EXPECT_EQ(long(a), long(b)); }

TEST(cuda_blas_table, numbers_are_those_of_the_header) {
  same(blas::compute::f32, CUBLAS_COMPUTE_32F);
  same(blas::description_attribute::transpose_a, CUBLASLT_MATMUL_DESC_TRANSA);
  same(blas::description_attribute::transpose_b, CUBLASLT_MATMUL_DESC_TRANSB);
  same(blas::layout_attribute::batches, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
  same(blas::layout_attribute::batch_stride, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
  same(blas::preference_attribute::workspace_bytes, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
  same(blas::preference_attribute::reduction_schemes, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
  same(blas::preference_attribute::alignment_a, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
  same(blas::preference_attribute::alignment_b, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
  same(blas::preference_attribute::alignment_c, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
  same(blas::preference_attribute::alignment_d, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
  same(0, CUDA_R_32F);
  same(2, CUDA_R_16F);
  same(14, CUDA_R_16BF);
  same(2, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
  same(0, CUBLAS_STATUS_SUCCESS);
  same(0, CUBLAS_OP_N);
  same(1, CUBLAS_OP_T);
}

}  // namespace blas_table_test
}  // namespace isotope::cuda
#else
TEST(cuda_blas_table, numbers_are_those_of_the_header) { GTEST_SKIP() << "cublasLt.h is not installed"; }
#endif
