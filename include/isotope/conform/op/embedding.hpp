#pragma once
#include "../../op/embedding.hpp"
#include "../spec.hpp"

namespace isotope::conform {

template <> struct op_spec<op::embedding> : spec_basis {
  static constexpr track on = track::strict;
  static constexpr std::array inputs{operand_role{.name = "table", .parameter = true}, operand_role{"ids", holds::integers, false}};
  static constexpr std::array outputs{result_role{"y", holds::floating, comparison::exact}};
  static constexpr numeric_policy policy{
      .sums = "rows in ascending order, in f32", .flushes_on_gpu = false, .nan = "in, then out; for ids out of range"};
  static constexpr std::array fields{attribute_field{"format", attribute_kind::format_or_none, 0, 0}};
  static constexpr std::array boundary{-1.0, 0.0, 1.0, 50256.0, 50257.0};

  static void reference(const call& c, std::span<answer> y) {
    const std::int64_t V = c.in[0].dims[0], C = c.in[0].dims[1];
    y[0].resize(c.in[1].dims.count() * C);
    for (std::int64_t r = 0; r < c.in[1].dims.count(); ++r)
      for (std::int64_t k = 0; k < C; ++k) {
        const double id = c.in[1][r];
        y[0].set(r * C + k, id >= 0 && id < double(V) ? c.in[0][std::int64_t(id) * C + k] : nan);
      }
  }
  /// Rows of one id are summed one after another.
  static void gradient(const call& c, std::span<const array> dy, std::span<answer> dx) {
    const std::int64_t V = c.in[0].dims[0], C = c.in[0].dims[1];
    dx[0].resize(V * C);
    std::vector<double> uses(static_cast<std::size_t>(V));
    for (std::int64_t r = 0; r < c.in[1].dims.count(); ++r) {
      const double id = c.in[1][r];
      if (!(id >= 0 && id < double(V))) continue;
      uses[std::size_t(id)] += 1;
      for (std::int64_t k = 0; k < C; ++k) dx[0].add(std::int64_t(id) * C + k, dy[0][r * C + k], std::fabs(dy[0][r * C + k]));
    }
    for (std::int64_t v = 0; v < V; ++v)
      for (std::int64_t k = 0; k < C; ++k) dx[0].slack[std::size_t(v * C + k)] *= (uses[std::size_t(v)] + 1) * c.on.u();
  }
  static void cases(case_sink& s) {
    const auto add = [&](std::int64_t V, std::int64_t C, const shape& rows, const generator* from = &generator_of<generators::stray_ids>) {
      s.add({s.x({V, C}), s.integers(rows, 0, double(V), from)}, {}, true);
    };
    // fast runs have few widths: drivers on the processor compile kernels for each
    const bool fast = s.how() == strength::fast;
    const auto width = [&](std::int64_t n, std::int64_t of_few) { return fast ? of_few : n; };
    for (const std::int64_t C : {1, 3, 4, 31, 64, 65, 256, 257, 768})
      if (!fast || (C != 3 && C != 256 && C != 257)) add(19, C, {23});
    for (const std::int64_t n : {0, 1, 64, 257, 1025, 3000}) add(50, width(8, 4), {n});
    add(1, width(5, 4), {9});
    add(50257, 4, {40});
    add(7, width(6, 4), {});
    add(12, width(10, 31), {2, 3, 4});
    add(40, width(16, 64), {300}, &generator_of<generators::constant>);  // one id
    if (s.program() == dtype::f32) {                                     // weights stored in f16
      const op::embedding::constants wide{.format = dtype::f32};
      s.add({operand_recipe{{19, 24}, dtype::f16, &generator_of<generators::uniform>, -2, 2, row_major},
             s.integers({30}, 0, 19, &generator_of<generators::stray_ids>)},
            wide);
    }
    if (s.blocks())
      for (const dtype type : {dtype::q8_0, dtype::q4_0})
        s.add({operand_recipe{{37, 160}, type, &generator_of<generators::uniform>, -2, 2, row_major},
               s.integers({30}, 0, 37, &generator_of<generators::stray_ids>)},
              op::embedding::constants{.format = s.program()});
    for (int k = 0; k < s.repeats(); ++k) add(s.size(k, 0, 1, 200), width(s.size(k, 1, 1, 70), 65), {s.size(k, 2, 1, 200)});
    s.put({.kind = case_kind::refusal, .in = {s.x({5, 7, 2}), s.integers({4}, 0, 5, &generator_of<generators::whole>)}});
    s.put({.kind = case_kind::refusal, .in = {s.x({5, 7}), s.x({4})}});
  }
};

}  // namespace isotope::conform
