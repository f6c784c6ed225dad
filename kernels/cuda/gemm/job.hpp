#pragma once
/// A matmul while it is recorded: the arguments that all its kernels share, how its sums are finished, and the launches of its batches and
/// parts of K.
#include <isotope/kernels/cuda/gemm/gemm.h>
#include <isotope/fatbins/matmul_reduce.hpp>
#include <isotope/kernels/cuda/body/body.hpp>
#include <isotope/kernels/cuda/gemm/chain.hpp>
#include <isotope/kernels/cuda/gemm/shape.hpp>
#include <isotope/kernels/cuda/gemm/split.hpp>

namespace isotope::cuda {

class matmul_job {
 public:
  const launch* given = nullptr;
  matmul_shape s;
  explicit matmul_job(const launch& l) : given(&l), s(l), body_(l, int(host_operands(l))) {}

  const view& y() const { return given->out[0]; }
  /// Whether rows are to have the same bits however many there are. Then tiles that add up a row along K, undivided, take all sizes.
  bool in_one_order() const { return given->constants<op::matmul>().batch_invariant; }
  /// Whether all batches of operand k (a, b) start at multiples of `elems` elements from its address.
  bool batches_whole(std::size_t k, std::int64_t elems) const {
    const auto w = s.walked();
    bool whole = w.inner_stride[k] % elems == 0 && w.outer_stride[k] % elems == 0;
    for (std::int64_t p = 0; p < s.pieces(); ++p) whole = whole && s.offset(p, k) % elems == 0;
    return whole;
  }
  /// Whether every line of operand k starts at a multiple of 16 bytes.
  bool aligned(const matmul_operand& x, std::size_t k) const {
    const std::int64_t elems = 16 / size_of(x.type);
    return x.line % elems == 0 && x.at % 16 == 0 && batches_whole(k, elems);
  }
  /// The index of the memory order in the lists of kernels: nn, nt, tn, tt. The first letter is t if lines of A run along M, the second if
  /// those of B run along K.
  std::size_t order() const { return (s.a.cross ? 2u : 0u) + (s.b.cross ? 0u : 1u); }
  /// Whether sizes fit the arguments of kernels.
  bool fits() const {
    constexpr std::int64_t most = (std::int64_t(1) << 31) - 4096;
    return s.M < most && s.N < most && s.K < most && s.batches() < most;
  }

  /// Whether sums of the whole K are finished by a case of finish_tile.cuh that has code of its own.
  bool has_case() const { return whole_arguments().fast != gpu::case_other; }

  /// The arguments of a kernel that computes the whole matmul and finishes eight columns at a time.
  gpu::gemm whole_arguments() const {
    gpu::gemm g = arguments(0, {}, false);
    g.fast = case_of(g);
    return g;
  }

  /// A kernel of a gemm and its blocks.
  struct form {
    const device_code* code = nullptr;
    std::string_view function;
    std::int64_t tiles = 1;   // blocks of a batch and a part of K
    std::int64_t across = 1;  // of them along y
    std::uint32_t threads = 256;
    std::int64_t shared_bytes = 0;
    bool eights = true;           // the kernel finishes eight columns at a time
    bool swapped = false;         // it works on the transposed product
    std::int32_t teams = 1;       // warps of a block that share columns, each with a part of K
    bool starts_early = false;    // the kernel reads B before it waits for others: see dispatch::starts_early
    std::string_view matrices{};  // the format that tensor cores take
  };
  /// Adds the launches of all batches, then that of the sum of the parts.
  void add(recording& r, const form& f, const matmul_split::choice& split) const {
    const bool partial = split.parts > 1;
    for (std::int64_t p = 0; p < s.pieces(); ++p) {
      gpu::gemm g = arguments(p, f, partial);
      g.parts = std::int32_t(split.parts);
      g.part_depth = std::int32_t(std::min<std::int64_t>(split.depth, (std::int64_t(1) << 31) - 1));
      if (partial) {
        g.finish = gpu::finish_partial;
        g.y = given->scratch;
      }
      g.fast = case_of(g);
      g.early = f.starts_early;
      const std::int64_t some = most_z / split.parts;  // batches that one launch has along z
      for (std::int64_t first = 0; first < g.batches; first += some) {
        g.first = std::int32_t(first);
        std::vector<range> reads{given->in[0], given->in[1]}, writes;
        if (partial) writes.push_back(partial_sums(split));
        else add_result_ranges(reads, writes);
        grid count = per_block(f.tiles / f.across, f.threads, f.shared_bytes);
        count.y = std::uint32_t(f.across);
        count.z = std::uint32_t(std::min(some, g.batches - first) * split.parts);
        auto& d = r.add(*f.code, f.function, g, count, std::move(reads), std::move(writes));
        d.matrices = f.matrices;
        d.starts_early = f.starts_early;
        if (f.starts_early) d.early = {given->in[1]};
      }
    }
    if (partial) add_sum_of_parts(r, split.parts, partial_sums(split));
  }
  /// Adds the launches that add the partial sums at `partial` and finish them.
  void add_sum_of_parts(recording& r, std::int64_t parts, const range& partial) const {
    for (std::int64_t p = 0; p < s.pieces(); ++p) {
      gpu::gemm g = arguments(p, {}, false);
      g.a.at = partial.first;
      g.parts = std::int32_t(parts);
      std::vector<range> reads{partial}, writes;
      add_result_ranges(reads, writes);
      r.add(fatbins::matmul_reduce, "matmul_reduce", g, per_item(std::int64_t(g.batches) * s.M * ((s.N + 7) / 8), 128), std::move(reads),
            std::move(writes));
    }
  }
  /// Adds what is read beside the operands when sums are finished (c, the body's operands, what is added to) and what is written.
  void add_result_ranges(std::vector<range>& reads, std::vector<range>& writes) const {
    if (s.beta != 0) reads.push_back(given->in[2]);
    if (!body_.empty()) return body_.add_ranges(reads, writes);
    if (accumulates()) reads.push_back(y());
    writes.push_back(y());
  }

 private:
  static constexpr std::int64_t most_z = 65535;  // blocks of a grid along z
  fused_body body_;

  static std::int64_t host_operands(const launch& l) { return l.constants<op::matmul>().operands == 3 ? 3 : 2; }
  bool accumulates() const { return (given->accumulate & 1u) != 0 && body_.empty(); }
  range partial_sums(const matmul_split::choice& split) const { return {given->scratch, 4 * split.parts * y().dims.count()}; }

  /// The arguments of piece p of matmul_shape::pieces, with all of K. `partial`: results are sums of parts, which are f32 in scratch.
  gpu::gemm arguments(std::int64_t p, const form& f, bool partial) const {
    const auto w = s.walked();
    const auto at = [&](std::uint64_t base, std::size_t k, dtype t) { return base + std::uint64_t(s.offset(p, k) * size_of(t)); };
    const auto operand = [&](const matmul_operand& x, std::size_t k) {
      return gpu::gemm_operand{at(x.at, k, x.type),  x.line, w.outer_stride[k], w.inner_stride[k], std::int32_t(x.type),
                               aligned(x, k) ? 1 : 0};
    };
    gpu::gemm g{};
    g.a = operand(s.a, 0);
    g.b = operand(s.b, 1);
    if (f.swapped) std::swap(g.a, g.b);
    if (s.beta != 0) {
      g.c = at(given->in[2].at, 2, given->in[2].type);
      g.c_type = std::int32_t(given->in[2].type);
      g.c_row = s.c_row;
      g.c_column = s.c_col;
      g.c_outer = w.outer_stride[2];
      g.c_inner = w.inner_stride[2];
    }
    g.y = y().at;
    g.elements = y().dims.count();
    g.before = p * w.count;
    g.rows = std::int32_t(f.swapped ? s.N : s.M);
    g.columns = std::int32_t(f.swapped ? s.M : s.N);
    g.depth = std::int32_t(s.K);
    g.inner = std::int32_t(w.inner);
    g.batches = std::int32_t(w.count);
    g.parts = 1;
    g.part_depth = std::int32_t(s.K);
    g.y_type = std::int32_t(y().type);
    g.product_type = std::int32_t(given->constants<op::matmul>().format.type());
    g.finish = gpu::finish_store;
    g.accumulate = accumulates();
    g.alpha = s.alpha;
    g.beta = s.beta;
    g.a_cross = f.swapped ? s.b.cross : s.a.cross;
    g.teams = f.teams;
    g.swapped = f.swapped;
    bool whole = f.eights && s.N % 8 == 0;
    if (partial) {
      whole = whole && given->scratch % 16 == 0;
    } else if (body_.empty()) {
      whole = whole && y().at % 16 == 0;
    } else if (whole && chain_of(*given, body_, g)) {
      g.finish = gpu::finish_chain;
    } else {
      g.finish = gpu::finish_body;
      g.body = body_.arguments();
      whole = false;
    }
    g.eights = whole;
    return g;
  }
};

}  // namespace isotope::cuda
