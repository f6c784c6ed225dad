#pragma once
/// The push constants and specialization that all gemm shaders share; mirrors gemm/launch.glsl.
#include <isotope/kernels/vulkan/gemm/shape.hpp>

namespace isotope::vulkan {

struct matmul_push {
  std::uint64_t a = 0, b = 0, c = 0, y = 0, body = 0;
  std::uint32_t M = 0, N = 0, K = 0;
  std::uint32_t a_line = 0, b_line = 0;
  std::uint32_t inner = 1;
  std::uint32_t a_outer = 0, a_inner = 0, b_outer = 0, b_inner = 0;
  std::uint32_t first = 0, before = 0;
  std::uint32_t parts = 1, depth = 0;
  std::uint32_t batches = 1, elements = 0;
};

/// A gemm while it is recorded: what all its dispatches share.
struct matmul_job {
  const launch* given = nullptr;
  matmul_shape s;
  explicit matmul_job(const launch& l) : given(&l), s(l) {}

  int host_operands() const { return given->constants<op::matmul>().operands == 3 ? 3 : 2; }
  /// Whether all batches of operand k (a, b) start at multiples of `elems` elements from its address.
  bool batches_whole(std::size_t k, std::int64_t elems) const {
    const auto w = s.walked();
    bool whole = w.inner_stride[k] % elems == 0 && w.outer_stride[k] % elems == 0;
    for (std::int64_t p = 0; p < s.pieces(); ++p) whole = whole && s.offset(p, k) % elems == 0;
    return whole;
  }
  /// Whether reads of `elems` adjacent elements of operand k are aligned and stay inside its lines.
  bool whole(const matmul_operand& x, std::size_t k, std::int64_t elems) const { return x.whole(elems) && batches_whole(k, elems); }
  /// Whether rows are to have the same bits however many there are. Then tiles that add up a row along K, undivided, take all sizes.
  bool in_one_order() const { return given->constants<op::matmul>().batch_invariant; }
  bool accumulates() const { return (given->accumulate & 1u) != 0 && given->body.empty(); }
  const view& y() const { return given->out[0]; }
  /// Whether the rows of y are whole, aligned quads.
  bool whole_rows() const { return s.N % 4 == 0 && y().at % std::uint64_t(4 * size_of(y().type)) == 0; }

  /// Returns constants 0 to 18. `partial`: sums go to scratch; `edge` and `quads`: the shaders' EDGE and Y_WHOLE.
  constants shared(std::uint32_t invocations, bool edge, bool partial, bool quads) const {
    const auto w = s.walked();
    constants r{invocations, given->device->subgroup};
    r.add(s.a.type).add(s.b.type).add(s.a.cross).add(s.b.cross).add(edge).add(partial);
    r.add(given->constants<op::matmul>().format.type()).add(y().type).add(quads).add(accumulates());
    r.add(s.alpha).add(s.beta).add(s.beta == 0 ? dtype::f32 : given->in[2].type);
    r.add(s.c_row).add(s.c_col).add(w.outer_stride[2]).add(w.inner_stride[2]);
    return r;
  }
  /// Returns the push constants of piece p of matmul_shape::pieces, with all of K.
  matmul_push push(std::int64_t p) const {
    const auto w = s.walked();
    const auto at = [&](std::uint64_t base, std::size_t k, dtype t) { return base + std::uint64_t(s.offset(p, k) * size_of(t)); };
    matmul_push r;
    r.a = at(s.a.at, 0, s.a.type);
    r.b = at(s.b.at, 1, s.b.type);
    if (s.beta != 0) r.c = at(given->in[2].at, 2, given->in[2].type);
    r.y = y().at;
    r.M = std::uint32_t(s.M);
    r.N = std::uint32_t(s.N);
    r.K = std::uint32_t(s.K);
    r.a_line = std::uint32_t(s.a.line);
    r.b_line = std::uint32_t(s.b.line);
    r.inner = std::uint32_t(w.inner);
    r.a_outer = std::uint32_t(w.outer_stride[0]);
    r.a_inner = std::uint32_t(w.inner_stride[0]);
    r.b_outer = std::uint32_t(w.outer_stride[1]);
    r.b_inner = std::uint32_t(w.inner_stride[1]);
    r.before = std::uint32_t(p * w.count);
    r.depth = std::uint32_t(s.K);
    r.batches = std::uint32_t(w.count);
    r.elements = std::uint32_t(y().dims.count());
    return r;
  }
};

}  // namespace isotope::vulkan
