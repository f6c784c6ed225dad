#pragma once
/// A matmul that cuBLASLt computes: one product without batches or third operand. A fused body is a launch of its own, which reads the rounded product from
/// one of the body's results and overwrites it, so it gives the bits of a body in an epilogue.
#include <array>

#include <isotope/kernels/cuda/gemm/job.hpp>
#include <isotope/kernels/cuda/portable/elementwise.hpp>

namespace isotope::cuda {

template <GpuPrecision P> class matmul_library {
 public:
  explicit matmul_library(const matmul_job& j) : j_(j), to_(result()) {}

  /// Returns why the library does not take this matmul; empty if it does.
  std::string_view obstacle() const {
    const launch& l = *j_.given;
    const matmul_shape& s = j_.s;
    if (!l.device->blas) return "cuBLASLt is not here";
    if (s.batches() != 1 || s.pieces() != 1) return "own kernels take batches";
    if (s.beta != 0 || s.M < 1 || s.N < 1 || s.K < 1) return "own kernels take what is left";
    const bool small = 2.0 * double(s.M) * double(s.N) * double(s.K) < flops_of_a_launch;
    if (!l.body.empty() && small) return "own kernels apply the fused body without another launch";
    if (s.a.type == dtype::f32 && small) return "small products have the same bits in every memory order";
    if (to_ < 0) return "no result of the fused body has room for the product";
    const dtype y = l.out[std::size_t(to_)].type;
    if (s.a.type != s.b.type || (y != dtype::f32 && y != s.a.type)) return "operands have different formats";
    if (s.overlapping()) return "lines of an operand share elements";
    if (s.a.at % 16 != 0 || s.b.at % 16 != 0 || l.out[std::size_t(to_)].at % 16 != 0) return "a matrix is not aligned to 16 bytes";
    return {};
  }
  void record(recording& r) const {
    const launch& l = *j_.given;
    const matmul_shape& s = j_.s;
    const view& y = l.out[std::size_t(to_)];
    const bool adds = l.body.empty() && (l.accumulate & 1u) != 0;
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
    if (!l.body.empty()) record_body(r);
  }

 private:
  static constexpr double flops_of_a_launch = 1e9;  // with fewer, a launch for the body takes longer than the library gains
  const matmul_job& j_;
  int to_ = -1;  // the output that holds the product; -1: there is none

  /// An output in the product's format that the body neither adds to nor reads, in whole or in part, as an operand.
  int result() const {
    const launch& l = *j_.given;
    const dtype product = l.constants<op::matmul>().format.type();
    if (l.body.empty()) return l.out[0].type == product ? 0 : -1;
    for (std::size_t k = 0; k < l.out.size(); ++k) {
      bool free = l.out[k].type == product && ((l.accumulate >> k) & 1u) == 0;
      for (const view& x : l.in) free = free && !range(x).overlaps(l.out[k]);
      if (free) return int(k);
    }
    return -1;
  }
  void record_body(recording& r) const {
    const launch& l = *j_.given;
    std::array<view, max_inputs> in{};
    std::copy(l.in.begin(), l.in.end(), in.begin());
    in[0] = l.out[std::size_t(to_)];
    std::array<micro_op, max_micro_ops> body{};
    std::copy(l.body.begin(), l.body.end(), body.begin());
    for (micro_op& m : body)
      for (auto& a : m.arg)
        if (a == gemm_result) a = 0;
    launch apart = l;
    apart.in = std::span<const view>(in.data(), l.in.size());
    apart.body = std::span<const micro_op>(body.data(), l.body.size());
    kernel<op::elementwise, P, kernels::portable>::record(apart, r);
  }

  /// `rows`: the lines are rows of the matrix, otherwise its columns.
  static library_product::matrix lines(const matmul_operand& x, bool rows) {
    const std::int64_t step = std::max(x.line, x.length);  // a single line has no distance to the next
    return {x.at, x.type, rows ? step : 1, rows ? 1 : step, 0};
  }
};

}  // namespace isotope::cuda
