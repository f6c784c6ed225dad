#pragma once
/// The sizes, strides and batches of a gemm as its kernels take them.
#include <isotope/backend/cuda/launch.hpp>
#include <isotope/op/matmul.hpp>

namespace isotope::cuda {

/// One operand: lines of adjacent elements, `line` elements apart. `cross`: a line runs across K (along M or N), otherwise along K.
struct matmul_operand {
  std::uint64_t at = 0;
  dtype type = dtype::f32;
  bool cross = false;
  std::int64_t line = 0, length = 0;  // length: elements of a line

  /// Whether reads of `elems` adjacent elements, at multiples of `elems` from `at`, are aligned and never leave a line.
  bool whole(std::int64_t elems) const {
    return line % elems == 0 && length % elems == 0 && at % std::uint64_t(elems * size_of(type)) == 0;
  }
};

/// y[b, m, n] = alpha sum_k a[b, m, k] b[b, k, n] + beta c[b, m, n]. A batch axis that continues A's rows or another batch axis is merged
/// with it; what remains beyond two axes takes one dispatch for each index: `pieces()`.
class matmul_shape {
 public:
  static constexpr int operands = 3;  // operands with batch strides: a, b, c

  std::int64_t M = 0, N = 0, K = 0;
  matmul_operand a, b;
  std::int64_t c_row = 0, c_col = 0;
  float alpha = 1, beta = 0;

  explicit matmul_shape(const launch& l) {
    const shape& y = l.out[0].dims;
    const view &x = l.in[0], &w = l.in[1];
    const auto k = l.constants<op::matmul>();
    const view c = k.operands == 3 ? l.in[2] : view{};
    alpha = float(k.alpha);
    beta = k.operands == 3 ? float(k.beta) : 0.0f;
    M = y[-2];
    N = y[-1];
    K = x.dims[-1];
    std::int64_t a_row = stride(x, -2);
    if (c.dims.rank >= 2) {
      c_row = stride(c, -2);
      c_col = stride(c, -1);
    }
    for (int i = 0; i + 2 < y.rank; ++i)
      if (y[i] != 1) push({y[i], {along(x, y.rank, i), along(w, y.rank, i), beta == 0 ? 0 : along(c, y.rank, i)}});
    while (rank_ > 0 && axes_[std::size_t(rank_ - 1)].stride[1] == 0 && fold(a_row)) {}
    a = lines(x, M, K, a_row, stride(x, -1));
    b = lines(w, N, K, stride(w, -1), stride(w, -2));
    join();
  }

  /// Whether lines of an operand share elements, as those of a broadcast operand do.
  bool overlapping() const {
    const auto shares = [this](const matmul_operand& x, std::int64_t outer) { return (x.cross ? K : outer) > 1 && x.line < x.length; };
    return shares(a, M) || shares(b, N);
  }
  std::int64_t batches() const {
    std::int64_t n = 1;
    for (int i = 0; i < rank_; ++i) n *= axes_[std::size_t(i)].size;
    return n;
  }
  /// The innermost batch axes, which one dispatch covers: batch p has offset p / inner times `outer[k]` plus p % inner times `inner[k]`.
  struct two_axes {
    std::int64_t count = 1, inner = 1;
    std::array<std::int64_t, operands> outer_stride{}, inner_stride{};
  };
  two_axes walked() const {
    two_axes r;
    if (rank_ >= 1) {
      r.inner = r.count = last(1).size;
      r.inner_stride = last(1).stride;
    }
    if (rank_ >= 2) {
      r.count *= last(2).size;
      r.outer_stride = last(2).stride;
    }
    return r;
  }
  std::int64_t pieces() const { return batches() / walked().count; }
  /// Returns the offset, in elements, of operand k in piece p.
  std::int64_t offset(std::int64_t p, std::size_t k) const {
    std::int64_t r = 0;
    for (int i = rank_ - 3; i >= 0; --i) {
      const axis& x = axes_[std::size_t(i)];
      r += p % x.size * x.stride[k];
      p /= x.size;
    }
    return r;
  }

 private:
  struct axis {
    std::int64_t size = 1;
    std::array<std::int64_t, operands> stride{};
  };
  std::array<axis, max_rank> axes_{};
  int rank_ = 0;

  void push(axis x) { axes_[std::size_t(rank_++)] = x; }
  const axis& last(int i) const { return axes_[std::size_t(rank_ - i)]; }

  static std::int64_t stride(const view& x, int i) { return x.strides[std::size_t(x.dims.rank + i)]; }
  /// Returns the stride of x along batch axis i of a result of `rank` axes; 0 where x broadcasts.
  static std::int64_t along(const view& x, int rank, int i) {
    const int k = i - (rank - x.dims.rank);
    return k < 0 || x.dims[k] == 1 ? 0 : x.strides[std::size_t(k)];
  }
  /// Turns the innermost batch axis into rows of A. Returns false if A or c is not contiguous across it.
  bool fold(std::int64_t& a_row) {
    const axis x = axes_[std::size_t(rank_ - 1)];
    if (M != 1 && (x.stride[0] != M * a_row || (beta != 0 && x.stride[2] != M * c_row))) return false;
    if (M == 1) {
      a_row = x.stride[0];
      c_row = x.stride[2];
    }
    M *= x.size;
    --rank_;
    return true;
  }
  /// Merges batch axes whose strides continue one another.
  void join() {
    int n = 0;
    for (int i = 0; i < rank_; ++i) {
      const axis x = axes_[std::size_t(i)];
      bool continues = n > 0;
      for (std::size_t k = 0; n > 0 && k < operands; ++k)
        continues = continues && axes_[std::size_t(n - 1)].stride[k] == x.size * x.stride[k];
      if (continues) {
        axes_[std::size_t(n - 1)].size *= x.size;
        axes_[std::size_t(n - 1)].stride = x.stride;
      } else {
        axes_[std::size_t(n++)] = x;
      }
    }
    rank_ = n;
  }
  /// @param outer  M or N, with stride `step`; K has stride `k_step`. One of the strides is 1 where its axis is longer than 1.
  static matmul_operand lines(const view& x, std::int64_t outer, std::int64_t K, std::int64_t step, std::int64_t k_step) {
    matmul_operand r{x.at, x.type};
    r.cross = (K == 1 || k_step != 1) && (outer == 1 || step == 1);
    r.length = r.cross ? outer : K;
    r.line = r.cross ? k_step : step;
    if ((r.cross ? K : outer) == 1) r.line = 0;
    return r;
  }
};

}  // namespace isotope::cuda
