#pragma once
/// A matmul that cuBLASLt computes: one product without batches, epilogue or third operand.
#include <isotope/kernels/cuda/gemm/job.hpp>

namespace isotope::cuda {

class matmul_library {
 public:
  explicit matmul_library(const matmul_job& j) : j_(j) {}

  /// Returns why the library does not take this matmul; empty if it does.
  std::string_view obstacle() const {
    const launch& l = *j_.given;
    const matmul_shape& s = j_.s;
    if (!l.device->blas) return "cuBLASLt is not here";
    if (!l.body.empty()) return "own kernels apply the fused body to each tile";
    if (s.batches() != 1 || s.pieces() != 1) return "own kernels take batches";
    if (s.beta != 0 || s.M < 1 || s.N < 1 || s.K < 1) return "own kernels take what is left";
    const dtype y = l.out[0].type;
    if (y != l.constants<op::matmul>().format.type()) return "the result has a format of its own";
    if (s.a.type != s.b.type || (y != dtype::f32 && y != s.a.type)) return "operands have different formats";
    if (s.a.at % 16 != 0 || s.b.at % 16 != 0 || l.out[0].at % 16 != 0) return "a matrix is not aligned to 16 bytes";
    return {};
  }
  void record(recording& r) const {
    const launch& l = *j_.given;
    const matmul_shape& s = j_.s;
    const view& y = l.out[0];
    const bool adds = (l.accumulate & 1u) != 0;
    library_product p;
    p.m = s.M, p.n = s.N, p.k = s.K, p.batches = 1;
    p.a = lines(s.a, !s.a.cross);
    p.b = lines(s.b, s.b.cross);
    p.d = {y.at, y.type, s.N, 1, 0};
    p.c = p.d;
    p.alpha = s.alpha;
    p.beta = adds ? 1.0f : 0.0f;
    p.workspace = l.scratch;
    p.workspace_bytes = l.scratch % 256 == 0 ? l.scratch_bytes : 0;
    std::vector<range> reads{l.in[0], l.in[1]}, writes{y};
    if (adds) reads.push_back(y);
    if (p.workspace_bytes > 0) writes.push_back({l.scratch, l.scratch_bytes});
    r.add(p, std::move(reads), std::move(writes));
  }

 private:
  const matmul_job& j_;

  /// `rows`: the lines are rows of the matrix, otherwise its columns.
  static library_product::matrix lines(const matmul_operand& x, bool rows) {
    const std::int64_t step = std::max(x.line, x.length);  // a single line has no distance to the next
    return {x.at, x.type, rows ? step : 1, rows ? 1 : step, 0};
  }
};

}  // namespace isotope::cuda
