#pragma once
/// What the specifications of normalisations share.
#include "rows.hpp"
#include "spec.hpp"

namespace isotope::conform {

struct norm_basis : spec_basis {
  static constexpr std::array fields{attribute_field{"epsilon", attribute_kind::number, 0, 1e-5}};
  static constexpr numeric_policy policy{.sums = "fixed blocks and a tree, in f32; two passes", .nan = "in, then its row"};
  static constexpr std::array boundary{0.0, 100.0, 4096.0, infinity, nan};
  static attributes with(double epsilon) {
    attributes a;
    a.f[0] = epsilon;
    return a;
  }
  /// Widths around subgroups and workgroups. `more` adds the operands after x.
  template <class More> static void shapes(case_sink& s, More&& more) {
    const auto add = [&](operand_recipe x, double epsilon, bool gradient = true) { s.add(more(std::move(x)), with(epsilon), gradient); };
    for (const std::int64_t n : {1, 2, 7, 31, 32, 33, 64, 255, 256, 257, 768, 1024, 1025, 2048}) add(s.x({5, n}), 1e-5);
    for (const std::int64_t rows : {0, 1, 2, 63, 130, 517}) add(s.x({rows, 24}), 1e-5, rows > 0);
    add(s.x({3, 4, 5, 16}), 1e-5);
    add(s.x({9, 96}), 1e-2);
    add(s.x({16, 768}, 100, 3, &generator_of<generators::normal>), 1e-5);
    add(s.x({16, 300}, 0, 1, &generator_of<generators::normal>), 1e-5);
    add(s.x({4, 40}, 3, 3, &generator_of<generators::constant>), 1e-5);
    add(ordered(s.x({12, 20}), {1, 0}), 1e-5);
    add(s.x({24, 24}, 0, 0, &generator_of<generators::specials>), 1e-5, false);
    for (int k = 0; k < s.repeats(); ++k) add(s.x({s.size(k, 0, 1, 40), s.size(k, 1, 2, 200)}), 1e-5);
    auto wrong = more(s.x({3, 8}));
    wrong[1].dims = {7};
    s.put({.kind = case_kind::refusal, .attr = with(1e-5), .in = wrong});
  }
};

}  // namespace isotope::conform
