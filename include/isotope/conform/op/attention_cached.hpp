#pragma once
#include "../../op/attention_cached.hpp"
#include "../attended_query.hpp"
#include "../spec.hpp"

namespace isotope::conform {

template <> struct op_spec<op::attention_cached> : spec_basis {
  static constexpr std::array inputs{operand_role{.name = "q", .differentiable = false},
                                     operand_role{.name = "keys", .differentiable = false},
                                     operand_role{.name = "values", .differentiable = false},
                                     operand_role{"sequence", holds::integers, false}, operand_role{"position", holds::integers, false}};
  static constexpr std::array outputs{result_role{"y"}};
  static constexpr std::array fields{attribute_field{.name = "heads", .slot = 0, .required = true},
                                     attribute_field{"window", attribute_kind::integer, 1, 0},
                                     attribute_field{"scale", attribute_kind::number, 0, 0}};
  static constexpr numeric_policy policy{
      .sums = "fixed by the position and, unless batch invariant, by how many rows there are, in f32 or wider",
      .contracts = true,
      .flushes_pairs = true,
      .nan = "in, then the queries that see it",
      .cpu_ulps = usual_cpu_ulps,
      .gpu_ulps = usual_gpu_ulps};
  static constexpr std::array boundary{0.0, -infinity, 80.0, -80.0};

  static void reference(const call& c, std::span<answer> y) {
    const auto is = c.constants<op::attention_cached>();
    const op::cache_sizes size(c.in[1].dims);
    const std::int64_t N = c.in[0].dims[0], H = is.heads, D = size.D;
    const double scale = is.scale == 0 ? 1 / std::sqrt(double(D)) : is.scale;
    y[0].resize(N * H * D);
    for (std::int64_t n = 0; n < N; ++n) {
      const double slot = c.in[3][n], own = c.in[4][n];
      if (!(slot >= 0 && slot < double(size.B) && own >= 0 && own < double(size.T))) continue;
      const auto end = std::int64_t(own) + 1, first = is.window != 0 && is.window < end ? end - is.window : 0;
      for (std::int64_t h = 0; h < H; ++h) {
        const std::int64_t head = (std::int64_t(slot) * size.G + h / (H / size.G)) * size.T;
        attend(c, scale, (n * H + h) * D, D, end - first, [&](std::int64_t t) { return (head + first + t) * D; }, y[0]);
      }
    }
    y[0].nmse = c.on.stored() > 0 ? 1.5e-5 : 1e-9;
  }

  struct form {
    std::int64_t N, B, H, G, T, D;
  };
  static void cases(case_sink& s) {
    const auto add = [&](const form& f, std::int64_t window = 0, double scale = 0, bool batch_invariant = false) {
      const shape cache{f.B, f.G, f.T, f.D};
      const generator* const places = &generator_of<generators::stray_ids>;
      s.add({s.x({f.N, f.H * f.D}), s.x(cache), s.x(cache), s.integers({f.N}, 0, double(f.B), places),
             s.integers({f.N}, 0, double(f.T), places)},
            op::attention_cached::constants{.heads = f.H, .window = window, .scale = scale, .batch_invariant = batch_invariant});
    };
    /// Prompts of several sequences, one after another, which kernels may take in blocks.
    const auto add_prompts = [&](const form& f, op::attention_cached::constants c = {},
                                 const generator* of_values = &generator_of<generators::uniform>) {
      const shape cache{f.B, f.G, f.T, f.D};
      c.heads = f.H;
      s.add({s.x({f.N, f.H * f.D}), s.x(cache), s.x(cache, -2, 2, of_values),
             s.integers({f.N}, 0, double(f.B), &generator_of<generators::prompt_slots>),
             s.integers({f.N}, 0, double(f.T), &generator_of<generators::prompt_positions>)},
            c);
    };
    // drivers on the processor compile kernels for every head size and window, so fast runs have few
    const bool fast = s.how() == strength::fast;
    add({5, 2, 4, 2, 9, 8});
    add({5, 2, 4, 2, 9, 8}, 0, 20);  // scores beyond the range of exp
    add({1, 1, 1, 1, 1, 8});
    add({0, 2, 2, 2, 5, 8});
    add({12, 3, 2, 2, 70, 8});
    add({3, 2, 6, 1, 40, 20});
    add({9, 2, 2, 2, 33, 20}, 4);
    add({2, 1, 2, 1, 72, 128});  // more keys than a workgroup reads at once
    add({3, 1, 2, 1, 1100, 8});  // more keys than one workgroup takes
    add({17, 2, 12, 12, 130, fast ? 20 : 64});
    // Kernels that are chosen for many rows, or for any number of them.
    add({12, 3, 2, 2, 70, 8}, 0, 0, true);
    if (!fast) add({17, 2, 12, 12, 130, 64}, 0, 0, true);
    if (!fast) {
      add({7, 1, 4, 4, 257, 64});
      add({6, 2, 3, 1, 20, 5});
      add({6, 2, 2, 1, 50, 128});
      for (const std::int64_t window : {1, 16, 64, 200}) add({9, 2, 2, 1, 100, 16}, window);
    }
    add_prompts({82, 2, 4, 2, 90, fast ? 20 : 64});
    add_prompts({82, 2, 2, 1, 90, 20}, {.scale = 20});
    if (!fast) {
      add_prompts({267, 3, 2, 2, 150, 64});
      add_prompts({267, 3, 2, 1, 150, 8}, {.batch_invariant = true});
      add_prompts({82, 2, 3, 1, 60, 5});                                             // a prompt that is longer than the cache
      add_prompts({122, 2, 1, 1, 90, 20}, {}, &generator_of<generators::key_mask>);  // infinite values
      for (const std::int64_t window : {16, 64}) add_prompts({122, 1, 2, 1, 100, 16}, {.window = window});
      add_prompts({82, 2, 2, 1, 90, 16}, {.window = 16, .batch_invariant = true});
    }
    for (int k = 0; k < s.repeats(); ++k) {
      const std::int64_t G = s.size(k, 0, 1, 3);
      add({s.size(k, 1, 1, 20), s.size(k, 2, 1, 3), G * s.size(k, 3, 1, 3), G, s.size(k, 4, 1, 90), fast ? 20 : 4 * s.size(k, 5, 1, 12)});
    }
    const auto refuse = [&](const shape& q, const shape& cache, std::int64_t heads, std::int64_t window) {
      const generator* const whole = &generator_of<generators::whole>;
      s.put({.kind = case_kind::refusal,
             .attr = op::attention_cached::constants{.heads = heads, .window = window},
             .in = {s.x(q), s.x(cache), s.x(cache), s.integers({q[0]}, 0, 2, whole), s.integers({q[0]}, 0, 2, whole)}});
    };
    refuse({5, 24}, {2, 2, 6, 8}, 3, 0);
    refuse({5, 32}, {2, 2, 6, 8}, 2, 0);
    refuse({5, 32}, {2, 2, 6, 8}, 4, -1);
  }
};

}  // namespace isotope::conform
