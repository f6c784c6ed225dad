#pragma once
/// The sizes and strides of a gemm, and how it is divided into tasks.
#include <isotope/kernels/cpu/gemm/microkernel.hpp>
#include <isotope/kernels/cpu/rows/parallel.hpp>
#include <isotope/op/matmul.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

/// y[b, m, n] = sum_k a[b, m, k] b[b, k, n]. Leading axes of A become rows where all of them share one matrix B.
struct matmul_shape {
  std::int64_t M = 0, N = 0, K = 0, batches = 1;
  std::int64_t a_row = 0, a_k = 0, b_k = 0, b_col = 0, c_row = 0, c_col = 0;

  explicit matmul_shape(const launch& l) : y_(l.out[0].dims) {
    const view &a = l.in[0], &b = l.in[1];
    const view c = l.constants<op::matmul>().operands == 3 ? l.in[2] : view{};
    M = y_[-2];
    N = y_[-1];
    K = a.dims[-1];
    const auto stride = [](const view& x, int i) { return x.strides[std::size_t(x.dims.rank + i)]; };
    a_row = M == 1 ? K : stride(a, -2);
    a_k = K == 1 ? 1 : stride(a, -1);
    b_k = K == 1 ? N : stride(b, -2);
    b_col = N == 1 ? 1 : stride(b, -1);
    if (c.dims.rank >= 2) {
      c_row = stride(c, -2);
      c_col = stride(c, -1);
    }
    for (int i = 0; i + 2 < y_.rank; ++i) {
      batches *= y_[i];
      const auto at = std::size_t(i);
      a_[at] = batch_stride(a, i);
      b_[at] = batch_stride(b, i);
      c_[at] = batch_stride(c, i);
    }
    fold();
  }
  std::int64_t offset_a(std::int64_t batch) const { return offset(batch, a_); }
  std::int64_t offset_b(std::int64_t batch) const { return offset(batch, b_); }
  std::int64_t offset_c(std::int64_t batch) const { return offset(batch, c_); }

 private:
  shape y_;
  extents a_{}, b_{}, c_{};

  /// Returns the stride of x along batch axis i of y; 0 where x broadcasts.
  std::int64_t batch_stride(const view& x, int i) const {
    const int k = i - (y_.rank - x.dims.rank);
    return k < 0 || x.dims[k] == 1 ? 0 : x.strides[std::size_t(k)];
  }
  std::int64_t offset(std::int64_t batch, const extents& strides) const {
    std::int64_t r = 0;
    if (batch == 0) return r;
    for (int i = y_.rank - 3; i >= 0; --i) {
      r += batch % y_[i] * strides[std::size_t(i)];
      batch /= y_[i];
    }
    return r;
  }
  void fold() {
    std::int64_t rows = M;
    for (int i = y_.rank - 3; i >= 0; --i) {
      if (y_[i] == 1) continue;
      const auto at = std::size_t(i);
      if (b_[at] != 0 || a_[at] != rows * a_row || c_[at] != rows * c_row) return;
      rows *= y_[i];
    }
    M = rows;
    batches = 1;
  }
};

/// Divides one chunk of a gemm into tasks, the cells of C: at least eight where the shape allows.
class matmul_grid {
 public:
  static constexpr std::int64_t rows = 96;    // largest cell height: with `depth`, its part of A takes 96 KB of L2
  static constexpr std::int64_t cols = 256;   // largest cell width: its f32 tile takes 96 KB of L2
  static constexpr std::int64_t depth = 256;  // length of a block of K: a panel of B takes 32 KB of L1
  static_assert(rows % micro_tile::rows == 0 && cols % micro_tile::cols == 0);

  matmul_grid(std::int64_t M, std::int64_t N, std::int64_t batches) : M_(M), N_(N), batches_(batches) {
    std::int64_t m = rows, n = cols;
    while (divide_up(M, m) * divide_up(N, n) * batches < 8) {
      if (n > 64) n /= 2;
      else if (m > 24) m /= 2;
      else break;
    }
    const auto even = [](std::int64_t size, std::int64_t limit, std::int64_t unit) {  // parts of about equal size
      return larger_of(1, divide_up(divide_up(size, divide_up(size, limit)), unit)) * unit;
    };
    m_ = even(M, m, micro_tile::rows);
    n_ = even(N, n, micro_tile::cols);
    across_ = divide_up(N, n_);
    down_ = divide_up(M, m_);
  }
  std::int64_t tasks() const { return batches_ * across_ * down_; }
  struct block {
    std::int64_t batch, m0, m1, n0, n1;
  };
  /// Returns the cell of task t. Rows vary fastest, so that neighbouring tasks share panels of B.
  block cell(std::int64_t t) const {
    const std::int64_t i = t % down_, j = t / down_ % across_;
    return {t / (down_ * across_), i * m_, smaller(M_, (i + 1) * m_), j * n_, smaller(N_, (j + 1) * n_)};
  }

 private:
  std::int64_t M_, N_, batches_, m_ = 0, n_ = 0, across_ = 0, down_ = 0;
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable
