#pragma once
#include "../../op/categorical.hpp"
#include "../philox_by_the_paper.hpp"
#include "../spec.hpp"

namespace isotope::conform {

template <> struct op_spec<op::categorical> : spec_basis {
  static constexpr track on = track::integer;
  static constexpr std::array inputs{operand_role{"logits"}};
  static constexpr std::array outputs{result_role{"class", holds::integers, comparison::exact}};
  static constexpr std::array fields{attribute_field{"temperature", attribute_kind::number, 0, 1},
                                     attribute_field{"seed", attribute_kind::scalar, 0, 0},
                                     attribute_field{"counter", attribute_kind::scalar, 1, 0}};
  static constexpr numeric_policy policy{.sums = "classes ascending, in f64 or two f32", .nan = "not defined"};
  static constexpr std::array boundary{0.0, -infinity, 80.0, -80.0};

  static void reference(const call& c, std::span<answer> y) {
    const std::int64_t V = c.in[0].dims.cols(), R = c.in[0].dims.count() / V;
    y[0].resize(R);
    std::vector<double> sums(static_cast<std::size_t>(V));
    for (std::int64_t r = 0; r < R; ++r) {
      double top = -infinity, sum = 0;
      for (std::int64_t k = 0; k < V; ++k) top = std::fmax(top, c.in[0][r * V + k]);
      for (std::int64_t k = 0; k < V; ++k)
        sums[std::size_t(k)] = sum += std::exp((c.in[0][r * V + k] - top) / c.constants<op::categorical>().temperature);
      const auto words = philox_words(c.scalars.seed, std::uint64_t(r) / 4, std::uint32_t(c.scalars.counter), c.stream);
      const double wanted = (double(words[std::size_t(r % 4)]) + 0.5) * 0x1p-32 * sum;
      std::int64_t drawn = 0;
      while (drawn + 1 < V && !(sums[std::size_t(drawn)] > wanted)) ++drawn;
      y[0].set(r, double(drawn));
    }
  }
  static void cases(case_sink& s) {
    for (const auto& [seed, counter] : {std::pair(0, 0), std::pair(99, 5)}) {
      test_case c;
      c.scalars.seed = std::uint64_t(seed);
      c.scalars.counter = std::uint64_t(counter);
      for (const double temperature : {1.0, 0.3, 2.5})
        for (const shape& n : {shape{5}, shape{1}, shape{4, 9}, shape{7, 64}, shape{2, 3, 33}, shape{3, 1000}}) {
          c.attr = op::categorical::constants{.temperature = temperature};
          c.in = {s.x(n, -4, 4)};
          s.put(c);
        }
      c.in = {s.x({6, 20}, 0, 0, &generator_of<generators::key_mask>)};
      s.put(c);
      for (int k = 0; k < s.repeats(); ++k) {
        c.in = {s.x({s.size(k, 0, 1, 20), s.size(k, 1, 1, 100)}, -3, 3)};
        s.put(c);
      }
    }
    test_case later;  // not the first of its step
    later.stream = 2;
    later.attr = op::categorical::constants{.temperature = 1};
    later.in = {s.x({60, 9}, -4, 4)};
    s.put(later);
    s.put({.kind = case_kind::refusal, .attr = op::categorical::constants{.temperature = 0}, .in = {s.x({3, 4})}});
    s.put({.kind = case_kind::refusal, .attr = op::categorical::constants{.temperature = 1}, .in = {s.x({3, 0})}});
  }
};

}  // namespace isotope::conform
