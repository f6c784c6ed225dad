#pragma once
#include "../../op/attention_packed.hpp"
#include "../attended_query.hpp"
#include "../spec.hpp"

namespace isotope::conform {

template <> struct op_spec<op::attention_packed> : spec_basis {
  static constexpr std::array inputs{operand_role{.name = "q", .differentiable = false}, operand_role{.name = "k", .differentiable = false},
                                     operand_role{.name = "v", .differentiable = false}, operand_role{"starts", holds::integers, false}};
  static constexpr std::array outputs{result_role{"y"}};
  static constexpr std::array fields{attribute_field{.name = "heads", .slot = 0, .required = true},
                                     attribute_field{"causal", attribute_kind::flag, 1, 0},
                                     attribute_field{"scale", attribute_kind::number, 0, 0}};
  static constexpr numeric_policy policy{.sums = "keys in tiles, ascending, in f32",
                                         .contracts = true,
                                         .flushes_pairs = true,
                                         .nan = "in, then the queries that see it",
                                         .cpu_ulps = usual_cpu_ulps,
                                         .gpu_ulps = usual_gpu_ulps};
  static constexpr std::array boundary{0.0, -infinity, 80.0, -80.0};

  static void reference(const call& c, std::span<answer> y) {
    const auto is = c.constants<op::attention_packed>();
    const std::int64_t N = c.in[0].dims[0], C = c.in[0].dims[1], H = is.heads, D = C / H;
    const double scale = is.scale == 0 ? 1 / std::sqrt(double(D)) : is.scale;
    y[0].resize(N * C);
    for (std::int64_t b = 0; b + 1 < c.in[3].dims[0]; ++b) {
      const auto start = [&](std::int64_t k) { return std::int64_t(std::fmin(std::fmax(c.in[3][k], 0), double(N))); };
      const std::int64_t first = start(b), end = start(b + 1);
      for (std::int64_t n = first; n < end; ++n)
        for (std::int64_t h = 0; h < H; ++h)
          attend(
              c, scale, n * C + h * D, D, (is.causal ? n + 1 : end) - first, [&](std::int64_t t) { return (first + t) * C + h * D; }, y[0]);
    }
    y[0].nmse = c.on.stored() > 0 ? 1.5e-5 : 1e-9;
  }

  static void cases(case_sink& s) {
    const auto add = [&](std::int64_t N, std::int64_t B, std::int64_t H, std::int64_t D, bool causal = false, double scale = 0) {
      const shape rows{N, H * D};
      s.add({s.x(rows), s.x(rows), s.x(rows), s.integers({B + 1}, 0, double(N), &generator_of<generators::ascending>)},
            op::attention_packed::constants{.heads = H, .causal = causal, .scale = scale});
    };
    // drivers on the processor compile kernels for every head size, so fast runs have few
    const bool fast = s.how() == strength::fast;
    add(9, 2, 4, 8);
    add(9, 2, 4, 8, false, 20);  // scores beyond the range of exp
    add(1, 1, 1, 8);
    add(0, 2, 2, 8);
    add(5, 0, 2, 8);
    add(7, 12, 3, 8);  // empty sequences
    add(40, 3, 2, 20);
    add(70, 1, 2, 20, true);
    add(150, 2, 1, fast ? 20 : 32);
    add(33, 4, 6, 8, true);
    if (!fast) {
      add(300, 3, 2, 32);
      add(257, 1, 2, 64);
      add(130, 2, 2, 64, true);
      add(20, 3, 3, 5);
      add(50, 4, 1, 128);
      add(200, 40, 2, 32);
    }
    for (int k = 0; k < s.repeats(); ++k)
      add(s.size(k, 0, 1, 160), s.size(k, 1, 1, 9), s.size(k, 2, 1, 4), fast ? 20 : 4 * s.size(k, 3, 1, 12), k % 3 == 2);
    const auto refuse = [&](const shape& q, const shape& k, const shape& starts, std::int64_t heads) {
      s.put({.kind = case_kind::refusal,
             .attr = op::attention_packed::constants{.heads = heads},
             .in = {s.x(q), s.x(k), s.x(k), s.integers(starts, 0, 2, &generator_of<generators::whole>)}});
    };
    refuse({5, 24}, {5, 24}, {3}, 5);
    refuse({5, 24}, {4, 24}, {3}, 3);
    refuse({5, 24}, {5, 24}, {3, 1}, 3);
    refuse({5, 24}, {5, 24}, {0}, 3);
  }
};

}  // namespace isotope::conform
