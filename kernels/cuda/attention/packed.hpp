#pragma once
/// The operands of attention of packed sequences: attention/packed.h declares what kernels receive.
#include <isotope/backend/cuda/launch.hpp>
#include <isotope/op/attention_packed.hpp>

#include "packed.h"

namespace isotope::cuda {

/// Of all rows as if they were one sequence.
class packed_heads {
 public:
  gpu::packed_heads_arguments packed{};
  const gpu::attention_arguments& arguments = packed.heads;
  std::int64_t S, T, H, D;

  explicit packed_heads(const launch& l) : S(l.in[0].dims[0]), T(S) {
    const auto c = l.constants<op::attention_packed>();
    H = c.heads;
    D = l.in[0].dims[1] / H;
    auto& a = packed.heads;
    const auto word = [](std::int64_t n) { return std::int32_t(n); };
    const auto rows_of = [](const view& v) { return gpu::head_rows{v.at, 0, v.strides[0], std::int32_t(v.type)}; };
    a.q = rows_of(l.in[0]), a.k = rows_of(l.in[1]), a.v = rows_of(l.in[2]), a.y = rows_of(l.out[0]);
    a.B = 1, a.H = a.G = word(H), a.S = a.T = word(S), a.D = word(D);
    a.causal = c.causal;
    a.scale = float(c.scale);
    a.factor = 1;
    a.wide = aligned(4);
    packed.starts = l.in[3].at;
    packed.sequences = l.in[3].dims[0] - 1;
  }
  packed_heads(const packed_heads&) = delete;

  /// Returns why kernels that count rows in 32 bits do not run; empty if they do.
  std::string_view obstacle() const {
    const bool known = all_of(dtype::f32) || all_of(dtype::bf16) || all_of(dtype::f16);
    return S > std::int64_t(1) << 30 ? "there are more than 2^30 rows" : known ? "" : "the format is not f32, bf16 or f16";
  }
  /// Returns what the kernels read.
  static std::vector<range> reads(const launch& l) { return {l.in.begin(), l.in.end()}; }
  bool empty() const { return S * H * D == 0; }
  /// Returns the number of blocks of which each owns `own` rows of a head.
  std::int64_t blocks(std::int64_t own) const { return H * gpu::packed_blocks(S, packed.sequences, own); }
  bool all_of(dtype t) const {
    return all([&](const gpu::head_rows& x) { return x.type == std::int32_t(t); });
  }
  /// Whether all rows start at multiples of n elements.
  bool aligned(std::int64_t n) const {
    return all([&](const gpu::head_rows& x) {
      const auto bytes = std::uint64_t(n * size_of(dtype(x.type)));
      return D % n == 0 && x.row % n == 0 && x.at % bytes == 0;
    });
  }

 private:
  template <class F> bool all(const F& holds) const {
    const auto& a = packed.heads;
    return holds(a.q) && holds(a.k) && holds(a.v) && holds(a.y);
  }
};

}  // namespace isotope::cuda
