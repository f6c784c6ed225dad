#pragma once
#include "../../op/cache_append.hpp"
#include "../spec.hpp"

namespace isotope::conform {

template <> struct op_spec<op::cache_append> : spec_basis {
  static constexpr track on = track::strict;
  static constexpr std::array inputs{
      operand_role{.name = "keys", .differentiable = false}, operand_role{.name = "values", .differentiable = false},
      operand_role{.name = "k", .differentiable = false},    operand_role{.name = "v", .differentiable = false},
      operand_role{"sequence", holds::integers, false},      operand_role{"position", holds::integers, false}};
  static constexpr std::array outputs{result_role{"keys", holds::floating, comparison::exact},
                                      result_role{"values", holds::floating, comparison::exact}};
  static constexpr numeric_policy policy{.flushes_on_gpu = false};
  static constexpr std::array boundary{0.0, 1.0, -1.0, 80.0};

  static void reference(const call& c, std::span<answer> y) {
    const shape& cache = c.in[0].dims;
    const std::int64_t G = cache[1], T = cache[2], D = cache[3];
    for (std::size_t k = 0; k < 2; ++k) {
      y[k].resize(cache.count());
      for (std::int64_t i = 0; i < cache.count(); ++i) y[k].set(i, c.in[k][i]);
      for (std::int64_t n = 0; n < c.in[4].dims[0]; ++n) {
        const double slot = c.in[4][n], t = c.in[5][n];
        if (!(slot >= 0 && slot < double(cache[0]) && t >= 0 && t < double(T))) continue;
        for (std::int64_t g = 0; g < G; ++g)
          for (std::int64_t d = 0; d < D; ++d)
            y[k].set(((std::int64_t(slot) * G + g) * T + std::int64_t(t)) * D + d, c.in[2 + k][(n * G + g) * D + d]);
      }
    }
  }
  static void cases(case_sink& s) {
    const auto add = [&](std::int64_t N, std::int64_t B, std::int64_t G, std::int64_t T, std::int64_t D) {
      const shape cache{B, G, T, D}, rows{N, G * D};
      const generator* const places = &generator_of<generators::stray_ids>;
      s.add({s.x(cache), s.x(cache), s.x(rows), s.x(rows), s.integers({N}, 0, double(B), places), s.integers({N}, 0, double(T), places)});
    };
    add(5, 2, 2, 6, 8);
    add(9, 3, 1, 2, 5);  // places that several rows have
    add(40, 2, 1, 4, 3);
    add(1, 1, 1, 1, 1);
    add(1, 4, 2, 9, 16);
    add(0, 2, 2, 3, 4);
    add(7, 1, 3, 5, 20);
    add(17, 5, 2, 33, 8);
    add(70, 2, 4, 65, 16);
    if (s.how() != strength::fast) add(130, 3, 12, 40, 64);
    for (int k = 0; k < s.repeats(); ++k)
      add(s.size(k, 0, 1, 40), s.size(k, 1, 1, 4), s.size(k, 2, 1, 3), s.size(k, 3, 1, 30), s.size(k, 4, 1, 24));
    const auto refuse = [&](const shape& cache, const shape& rows, const shape& places) {
      const generator* const whole = &generator_of<generators::whole>;
      s.put({.kind = case_kind::refusal,
             .in = {s.x(cache), s.x(cache), s.x(rows), s.x(rows), s.integers(places, 0, 2, whole), s.integers(places, 0, 2, whole)}});
    };
    refuse({2, 2, 6, 8}, {5, 8}, {5});
    refuse({2, 2, 6, 8}, {5, 16}, {4});
    refuse({2, 6, 8}, {5, 48}, {5});
  }
};

}  // namespace isotope::conform
