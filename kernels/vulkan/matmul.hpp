#pragma once
/// Matrix products without matrix units: tiles in f32 (matmul.comp), products of few rows (matmul_skinny.comp), and the sum of split-K's parts.
#include <isotope/kernels/vulkan/body.hpp>
#include <isotope/kernels/vulkan/matmul_epilogue.hpp>
#include <isotope/kernels/vulkan/matmul_push.hpp>
#include <isotope/kernels/vulkan/matmul_split.hpp>
#include <isotope/shaders/matmul_fused.hpp>
#include <isotope/shaders/matmul_plain.hpp>
#include <isotope/shaders/matmul_reduce_fused.hpp>
#include <isotope/shaders/matmul_reduce_plain.hpp>
#include <isotope/shaders/matmul_skinny_fused.hpp>
#include <isotope/shaders/matmul_skinny_plain.hpp>

namespace isotope::vulkan {

/// Dispatches of one product whose tiles, parts and shader are chosen: all batches, then the sum of the parts.
class matmul_dispatches {
 public:
  matmul_dispatches(const matmul_job& j, recording& r) : j_(j), r_(r), body_(*j.given, j.own_operands()), body_table_(body_.table(r)) {}

  /// `own` adds the shader's own constants, from 19 on; `whole` says whether rows of what it writes are whole quads.
  struct form {
    const shader *plain = nullptr, *fused = nullptr;
    std::uint32_t invocations = 256, subgroup = 0;
    constants own;
    groups tiles;
    bool edge = true, quads = true;
  };
  void add(const form& f, matmul_split::choice split) {
    const bool partial = split.parts > 1;
    const bool quads = f.quads && j_.s.N % 4 == 0 && (partial || j_.whole_rows(4));
    constants c = j_.shared(f.invocations, f.edge, partial, quads);
    for (auto w : f.own.words()) c.add(w);
    if (!partial && !body_.empty()) body_.add_to(c);
    for (std::int64_t p = 0; p < j_.s.pieces(); ++p) {
      matmul_push push = j_.push(p);
      push.body = body_table_;
      push.parts = std::uint32_t(split.parts);
      push.depth = std::uint32_t(split.depth);
      if (partial) push.y = j_.given->scratch;
      each_batch_range(push.batches, split.parts, [&](std::int64_t first, std::int64_t z) {
        push.first = std::uint32_t(first);
        std::vector<range> reads{j_.given->in[0], j_.given->in[1]}, writes;
        if (partial) writes.push_back(j_.partial_sums(split.parts));
        else add_result_ranges(reads, writes);
        auto& d = r_.add(partial || body_.empty() ? *f.plain : *f.fused, c, push, {f.tiles.x, f.tiles.y, std::uint32_t(z)},
                         std::move(reads), std::move(writes));
        d.subgroup = f.subgroup;
      });
    }
    if (partial) reduce(split);
  }

 private:
  const matmul_job& j_;
  recording& r_;
  fused_body body_;
  std::uint64_t body_table_;

  /// What the end of a product reads beside its sums (c, the body's operands, what it adds to), and what it writes.
  void add_result_ranges(std::vector<range>& reads, std::vector<range>& writes) const {
    if (j_.s.beta != 0) reads.push_back(j_.given->in[2]);
    if (!body_.empty()) return body_.add_ranges(reads, writes);
    if (j_.accumulates()) reads.push_back(j_.y());
    writes.push_back(j_.y());
  }
  void reduce(matmul_split::choice split) {
    const bool quads = j_.whole_rows(4);
    constants c = j_.shared(64, true, false, quads);
    if (!body_.empty()) body_.add_to(c);
    for (std::int64_t p = 0; p < j_.s.pieces(); ++p) {
      matmul_push push = j_.push(p);
      push.a = j_.given->scratch;
      push.body = body_table_;
      push.parts = std::uint32_t(split.parts);
      std::vector<range> reads{j_.partial_sums(split.parts)}, writes;
      add_result_ranges(reads, writes);
      r_.add(body_.empty() ? shaders::matmul_reduce_plain : shaders::matmul_reduce_fused, c, push,
             cover(push.batches * j_.s.M * ((j_.s.N + 3) / 4), 64), std::move(reads), std::move(writes));
    }
  }
};

template <class P> struct kernel<op::matmul, P, kernels::portable> {
  /// The residual and its like: element i of an epilogue operand is read before element i of the output is written, by the same invocation.
  static constexpr std::uint32_t inplace = 0xfc;
  static constexpr bool epilogue = true;
  static constexpr std::int64_t scratch(const step_shapes& s) { return matmul_split::scratch(s); }

  static void record(const launch& l, recording& r) {
    if (l.out[0].dims.count() == 0) return;
    const matmul_job j(l);
    if (j.s.M <= few_rows) return record_few_rows(j, r);
    if (const matmul_epilogue<P> apart(l); apart.possible()) return apart.record(r, record);
    record_tiles(j, r);
  }

  static constexpr std::int64_t few_rows = 8;  // a subgroup of 32 keeps the sums of 8 rows and 4 columns in registers

 private:
  static constexpr std::int64_t slab = 16;      // of K, as in matmul.comp
  static constexpr std::int64_t few_units = 8;  // drivers that run on processors compile straight code slowly and gain nothing by it
  static constexpr double flops_per_byte = 10;  // an H200: 42 TFLOP/s of this kernel against 4.2 TB/s

  static void record_tiles(const matmul_job& j, recording& r) {
    const matmul_shape& s = j.s;
    const auto tiles = [&](std::int64_t edge) { return (s.M + edge - 1) / edge * ((s.N + edge - 1) / edge); };
    const std::int64_t units = j.given->device->units;
    const std::int64_t tile = tiles(128) * s.batches() >= units ? 128 : 64;
    const auto split = matmul_split::choose(tiles(tile) * s.batches(), tile * tile, s.batches() * s.M * s.N, s.K, slab,
                                            {2 * units, flops_per_byte}, j.given->device->switches.split_k);
    const bool a_whole = s.a.whole(4) && j.batches_whole(0, 4), b_whole = s.b.whole(4) && j.batches_whole(1, 4);
    matmul_dispatches::form f;
    f.plain = &shaders::matmul_plain;
    f.fused = &shaders::matmul_fused;
    f.own.add(tile).add(a_whole).add(b_whole).add(units < few_units ? 2 : 16);
    f.tiles = cover(tiles(tile), 1);
    f.edge = !(a_whole && b_whole && s.M % tile == 0 && s.N % tile == 0 && s.K % slab == 0);
    matmul_dispatches(j, r).add(f, split);
  }
  static void record_few_rows(const matmul_job& j, recording& r) {
    const matmul_shape& s = j.s;
    const std::int64_t lanes = j.given->device->subgroup, cols = s.M == 1 ? 1 : s.M <= 4 ? 2 : 4;
    const std::int64_t teams = s.b.cross ? 8 : 4;
    matmul_dispatches::form f;
    f.plain = &shaders::matmul_skinny_plain;
    f.fused = &shaders::matmul_skinny_fused;
    f.invocations = std::uint32_t(lanes * teams);
    f.subgroup = std::uint32_t(lanes);
    f.own.add(s.M).add(cols).add(!s.a.cross && s.a.whole(4) && j.batches_whole(0, 4)).add(s.b.whole(4) && j.batches_whole(1, 4));
    f.tiles = s.b.cross ? cover(s.N, 4 * lanes) : cover(s.N, cols * teams);
    f.quads = s.b.cross || cols == 4;
    matmul_dispatches(j, r).add(f, {1, s.K});
  }
};

}  // namespace isotope::vulkan
