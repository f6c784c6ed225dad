#pragma once
/// Turns a gemm whose tile and split of K are chosen into dispatches: all batches, then the sum of the parts.
#include <isotope/kernels/vulkan/body/body.hpp>
#include <isotope/kernels/vulkan/gemm/push.hpp>
#include <isotope/kernels/vulkan/gemm/split.hpp>
#include <isotope/shaders/matmul_reduce_many.hpp>
#include <isotope/shaders/matmul_reduce_plain.hpp>

namespace isotope::vulkan {

/// The variants of one shader: without epilogue, for bodies of at most four instructions (linear layers), and for all bodies.
struct matmul_modules {
  static constexpr int few = 4;
  const shader *plain = nullptr, *with_few = nullptr, *with_many = nullptr;

  const shader& of(const fused_body& b) const { return b.empty() ? *plain : b.form().instructions <= few ? *with_few : *with_many; }
};

class matmul_dispatches {
 public:
  matmul_dispatches(const matmul_job& j, recording& r) : j_(j), r_(r), body_(*j.given, j.host_operands()), table_(body_.table(r)) {}

  /// How a shader runs. `own`: its constants from 19 on; `edge`: its constant EDGE; `quads`: it finishes four columns at a time.
  struct form {
    matmul_modules code;
    std::uint32_t invocations = 256, subgroup = 0;
    constants own;
    groups tiles;
    bool edge = true, quads = true;
  };
  void add(const form& f, matmul_split::choice split) {
    const bool partial = split.parts > 1;
    constants c = j_.shared(f.invocations, f.edge, partial, f.quads && j_.s.N % 4 == 0 && (partial || j_.whole_rows()));
    for (auto w : f.own.words()) c.add(w);
    if (!partial && !body_.empty()) body_.add_to(c);
    for (std::int64_t p = 0; p < j_.s.pieces(); ++p) {
      matmul_push push = j_.push(p);
      push.body = table_;
      push.parts = std::uint32_t(split.parts);
      push.depth = std::uint32_t(split.depth);
      if (partial) push.y = j_.given->scratch;
      const std::int64_t some = 65535 / split.parts;  // batches that one dispatch has along z
      for (std::int64_t first = 0; first < push.batches; first += some) {
        push.first = std::uint32_t(first);
        std::vector<range> reads{j_.given->in[0], j_.given->in[1]}, writes;
        if (partial) writes.push_back(partial_sums(split));
        else add_result_ranges(reads, writes);
        const auto z = std::uint32_t(std::min(some, push.batches - first) * split.parts);
        auto& d =
            r_.add(partial ? *f.code.plain : f.code.of(body_), c, push, {f.tiles.x, f.tiles.y, z}, std::move(reads), std::move(writes));
        d.subgroup = f.subgroup;
      }
    }
    if (partial) reduce(split);
  }

 private:
  const matmul_job& j_;
  recording& r_;
  fused_body body_;
  std::uint64_t table_;

  range partial_sums(const matmul_split::choice& split) const { return {j_.given->scratch, 4 * split.parts * j_.y().dims.count()}; }
  /// Adds what the epilogue reads beside the sums (c, the body's operands, what it adds to) and what it writes.
  void add_result_ranges(std::vector<range>& reads, std::vector<range>& writes) const {
    if (j_.s.beta != 0) reads.push_back(j_.given->in[2]);
    if (!body_.empty()) return body_.add_ranges(reads, writes);
    if (j_.accumulates()) reads.push_back(j_.y());
    writes.push_back(j_.y());
  }
  void reduce(const matmul_split::choice& split) {
    static constexpr matmul_modules code{&shaders::matmul_reduce_plain, &shaders::matmul_reduce_many, &shaders::matmul_reduce_many};
    constants c = j_.shared(64, true, false, j_.whole_rows());
    if (!body_.empty()) body_.add_to(c);
    for (std::int64_t p = 0; p < j_.s.pieces(); ++p) {
      matmul_push push = j_.push(p);
      push.a = j_.given->scratch;
      push.body = table_;
      push.parts = std::uint32_t(split.parts);
      std::vector<range> reads{partial_sums(split)}, writes;
      add_result_ranges(reads, writes);
      r_.add(code.of(body_), c, push, per_invocation(push.batches * j_.s.M * ((j_.s.N + 3) / 4), 64), std::move(reads), std::move(writes));
    }
  }
};

}  // namespace isotope::vulkan
