#pragma once
#include "../../op/copy.hpp"
#include "../../op/cross_entropy_part.hpp"
#include "cross_entropy.hpp"

namespace isotope::conform {

/// dlogits = dloss (e / sum - onehot) / counted rows, e = exp(logits - top), in the columns of one device; top and sum, of all devices, are operands.
template <> struct op_spec<op::cross_entropy_part_grad> : spec_basis {
  static constexpr bool for_meshes = true;
  static constexpr std::array inputs{
      operand_role{"logits"},
      operand_role{"targets", holds::integers, false},
      operand_role{"top", holds::accumulated},
      operand_role{"sum", holds::accumulated},
      operand_role{"dloss", holds::accumulated},
      operand_role{.name = "all_targets", .what = holds::integers, .differentiable = false, .optional = true}};
  static constexpr std::array outputs{result_role{"dlogits"}};
  static constexpr numeric_policy policy{
      .nan = "in a row that counts, then in that row", .cpu_ulps = usual_cpu_ulps, .gpu_ulps = usual_gpu_ulps};
  static constexpr std::array boundary{0.0, -1.0, 8.0, -80.0};
  static constexpr std::array fields{attribute_field{.name = "classes", .slot = 0, .required = true},
                                     attribute_field{.name = "all", .slot = 1, .required = true},
                                     attribute_field{"first", attribute_kind::integer, 2, 0}};

  static void reference(const call& c, std::span<answer> y) {
    const auto k = c.constants<op::cross_entropy_part_grad>();
    const array &x = c.in[0], &targets = c.in[1], &counting = c.in.size() > 5 ? c.in[5] : targets;
    const std::int64_t N = x.dims.cols(), R = targets.dims.count();
    const auto counts = [&](double target) { return target >= 0 && target < double(k.all); };
    y[0].resize(R * N);
    const double counted = double(std::count_if(counting.at.begin(), counting.at.end(), counts)), g = c.in[4][0] / counted;
    for (std::int64_t r = 0; r < R; ++r) {
      if (!counts(targets[r])) continue;
      for (std::int64_t i = 0; i < k.classes; ++i) {
        const double z = x[r * N + i] - c.in[2][r], p = std::exp(z) / c.in[3][r], hit = targets[r] == double(k.first + i) ? 1 : 0;
        const double off = std::fabs(p) * (softmax_basis::finite(z) + 3 * c.on.ulps() + 8) + 8 * hit;
        y[0].set(r * N + i, g * (p - hit), std::fabs(g) * off * c.on.u());
      }
    }
  }

  /// The gradients of two devices side by side are that of all classes.
  static law::sides halves(std::span<const tensor<tape>> x, const attributes& a) {
    const auto at = place::current();
    const auto all = op::cross_entropy_part_grad::constants::of(a);
    tape& t = *x[0].machine;
    const auto y = t.record(rules<op::cross_entropy>, std::array{x[0].id, x[1].id}, {}, at, 0);
    if (!t.ok()) return {};
    const auto gradient = [&](const op_rules& op, const tensor<tape>& logits, const attributes& with) {
      const std::array in{logits.id, x[1].id, y.out[1], y.out[2], x[2].id};
      return tensor<tape>{&t, t.record(op, in, with, at, 0).out[0]};
    };
    const auto half = [&](std::int64_t first) {
      auto c = all;
      c.first = first;
      return gradient(rules<op::cross_entropy_part_grad>, contiguous(narrow(x[0], 1, first, c.classes)), c);
    };
    const auto left = half(0), right = half(all.classes);
    if (!t.ok()) return {};
    return {concat<tape>({left, right}, 1), gradient(rules<op::cross_entropy_grad>, x[0], op::cross_entropy::constants{})};
  }
  /// Each side may miss the gradient by its bound.
  static void slack_of_halves(const call& c, answer& right) {
    const attributes all_classes = op::cross_entropy::constants{};
    const call whole{c.in.subspan(0, 2), all_classes, c.scalars, c.on, c.stream};
    std::array<answer, 2> dx;
    op_spec<op::cross_entropy>::gradient(whole, c.in.subspan(2, 1), dx);
    for (std::size_t i = 0; i < right.slack.size(); ++i) right.slack[i] = 2 * dx[0].slack[i];
  }
  static constexpr std::array laws{law{"halves", &halves, &slack_of_halves}};

  static void cases(case_sink& s) {
    // A device that has N columns from `first` on, of which `classes` are classes, of `all`.
    const auto put = [&](const shape& rows, std::int64_t N, op::cross_entropy_part_grad::constants c, bool targets_of_all = false,
                         const generator* ids = &generator_of<generators::stray_ids>) {
      shape x = rows;
      x.push(N);
      test_case t{
          .attr = c,
          .in = {s.x(x, -8, 8), s.integers(rows, 0, double(c.all), ids), s.wide(rows, 2, 8), s.wide(rows, 1, 50), s.wide({}, 0.5, 2)}};
      if (targets_of_all) t.in.push_back(s.integers({3 * rows.count()}, 0, double(c.all), ids));
      s.put(t);
    };
    for (const std::int64_t V : {1, 2, 31, 32, 33, 64, 257, 1024, 1025, 4099})
      for (const std::int64_t first : {std::int64_t(0), V, 3 * V}) put({6}, V, {.classes = V, .all = 4 * V, .first = first});
    for (const std::int64_t R : {1, 2, 63, 65, 300, 1025}) put({R}, 17, {.classes = 17, .all = 34, .first = 17});
    for (const auto& [V, N] : {std::pair(50, 64), std::pair(257, 260), std::pair(1000, 1024)})  // the last device has fewer
      for (const bool all : {false, true}) put({7}, N, {.classes = V, .all = N + V, .first = N}, all);
    put({}, 9, {.classes = 9, .all = 18, .first = 9}, false, &generator_of<generators::whole>);
    put({2, 3, 4}, 50, {.classes = 50, .all = 100, .first = 50});
    put({3}, 25152, {.classes = 25105, .all = 50257, .first = 25152});
    for (int k = 0; k < s.repeats(); ++k) {
      const std::int64_t V = s.size(k, 1, 2, 500), parts = s.size(k, 2, 1, 8), mine = s.size(k, 3, 0, parts - 1);
      put({s.size(k, 0, 1, 60)}, V, {.classes = V, .all = parts * V, .first = mine * V}, k % 2 == 1);
    }
    s.add({s.x({5, 7}), s.integers({5}, -1, -1, &generator_of<generators::constant>), s.wide({5}), s.wide({5}, 1, 2), s.wide({})},
          op::cross_entropy_part_grad::constants{.classes = 7, .all = 14});  // no row counts
    for (const std::int64_t classes : {0, 8})
      s.put({.kind = case_kind::refusal,
             .attr = op::cross_entropy_part_grad::constants{.classes = classes, .all = 14},
             .in = {s.x({5, 7}), s.integers({5}, 0, 7, &generator_of<generators::whole>), s.wide({5}), s.wide({5}, 1, 2), s.wide({})}});
    for (const std::int64_t targets : {4, 6})
      s.put(
          {.kind = case_kind::refusal,
           .attr = op::cross_entropy_part_grad::constants{.classes = 7, .all = 14},
           .in = {s.x({5, 7}), s.integers({targets}, 0, 7, &generator_of<generators::whole>), s.wide({5}), s.wide({5}, 1, 2), s.wide({})}});
    for (const std::int64_t V : {1, 24, 65})
      s.put({.kind = case_kind::law,
             .law = 0,
             .attr = op::cross_entropy_part_grad::constants{.classes = V, .all = 2 * V},
             .in = {s.x({9, 2 * V}, -4, 4), s.integers({9}, 0, double(2 * V), &generator_of<generators::stray_ids>), s.wide({}, 0.5, 2)}});
  }
};

}  // namespace isotope::conform
