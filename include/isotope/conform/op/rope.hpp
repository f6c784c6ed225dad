#pragma once
#include "../../op/rope.hpp"
#include "../spec.hpp"

namespace isotope::conform {

template <> struct op_spec<op::rope> : spec_basis {
  static constexpr std::uint32_t version = 2;
  static constexpr std::array inputs{operand_role{"x"}, operand_role{"positions", holds::integers, false, false, true}};
  static constexpr std::array outputs{result_role{"y"}};
  static constexpr std::array fields{
      attribute_field{"base", attribute_kind::number, 0, 10000},   attribute_field{"first", attribute_kind::integer, 0, 0},
      attribute_field{"direction", attribute_kind::integer, 1, 1}, attribute_field{"heads", attribute_kind::integer, 2, 0},
      attribute_field{"context", attribute_kind::integer, 3, 0},   attribute_field{"factor", attribute_kind::number_bits, 4, 0},
      attribute_field{"low", attribute_kind::number, 1, 0},        attribute_field{"high", attribute_kind::number, 2, 0}};
  static constexpr numeric_policy policy{.sums = "two products", .contracts = true, .nan = "in, then its pair"};
  static constexpr std::array boundary{0.0, 1.0, 131071.0, infinity};

  /// The scaling by wavelengths, as the paper of Llama 3 has it.
  static double frequency(const op::rope::constants& c, std::int64_t d, std::int64_t D) {
    const double f = std::pow(c.base, -2 * double(d) / double(D)), wavelength = 2 * std::acos(-1.0) / f, L = double(c.scaling.context);
    if (L == 0 || wavelength < L / c.scaling.high) return f;
    if (wavelength > L / c.scaling.low) return f / c.scaling.factor;
    const double t = (L / wavelength - c.scaling.low) / (c.scaling.high - c.scaling.low);
    return (1 - t) * (f / c.scaling.factor) + t * f;
  }
  /// |e| <= 4 u |pair|: angles in f64, or in 2^-32 of a turn, their sine and cosine rounded, two products and a sum.
  static void rotate(const call& c, const array& x, double direction, answer& y) {
    const auto is = c.constants<op::rope>();
    const std::int64_t D = x.dims[3], rotated = is.heads == 0 ? x.dims[2] : is.heads;
    y.resize(x.dims.count());
    if (c.on.stored() == 0) y.roundings = 0;  // its rounding is among the four
    shape pairs = x.dims;
    pairs.set(3, D / 2);
    for_each_index(pairs, [&](std::int64_t, const extents& at) {
      const std::int64_t p = ((at[0] * x.dims[1] + at[1]) * x.dims[2] + at[2]) * D + at[3];
      const double a = x[p], b = x[p + D / 2];
      if (at[2] >= rotated) {
        y.set(p, a);
        y.set(p + D / 2, b);
        return;
      }
      const double t = (c.in.size() > 1 ? c.in[1][at[1]] : double(is.first + at[1])) * frequency(is, at[3], D);
      const double cosine = std::cos(t), sine = direction * std::sin(t), slack = 4 * c.on.u() * std::hypot(a, b);
      y.set(p, a * cosine - b * sine, slack);
      y.set(p + D / 2, b * cosine + a * sine, slack);
    });
  }
  static void reference(const call& c, std::span<answer> y) { rotate(c, c.in[0], double(c.constants<op::rope>().direction), y[0]); }
  static void gradient(const call& c, std::span<const array> dy, std::span<answer> dx) {
    rotate(c, dy[0], -double(c.constants<op::rope>().direction), dx[0]);
  }

  static void cases(case_sink& s) {
    const auto with = [](double base, std::int64_t first, std::int64_t direction = 1) {
      return op::rope::constants{.first = first, .direction = direction, .base = base};
    };
    for (const std::int64_t D : {2, 4, 6, 16, 64, 66, 128}) s.add({s.x({2, 5, 3, D})}, with(10000, 0), true);
    for (const std::int64_t S : {0, 1, 17, 64, 65, 256}) s.add({s.x({1, S, 2, 8})}, with(10000, 0), S > 0);
    for (const std::int64_t first : {1, 1023, 8191, 131000}) s.add({s.x({1, 72, 2, 32})}, with(10000, first), true);
    s.add({s.x({2, 9, 2, 16})}, with(500000, 3), true);
    s.add({s.x({2, 9, 2, 16})}, with(10000, 3, -1), true);
    s.add({ordered(s.x({2, 9, 4, 16}), {0, 2, 1, 3})}, with(10000, 0), true);
    for (int k = 0; k < s.repeats(); ++k)
      s.add({s.x({s.size(k, 0, 1, 3), s.size(k, 1, 1, 40), s.size(k, 2, 1, 4), 2 * s.size(k, 3, 1, 40)})},
            with(10000, s.size(k, 4, 0, 131072)), true);
    placed(s);
    s.put({.kind = case_kind::refusal, .attr = with(10000, 0), .in = {s.x({1, 2, 3, 5})}});
    s.put({.kind = case_kind::refusal, .attr = with(10000, 0), .in = {s.x({2, 3, 4})}});
  }

  /// Rows with positions of their own, scaled frequencies, heads that are copied.
  static void placed(case_sink& s) {
    const op::rope::constants llama{.heads = 3, .base = 500000, .scaling = {8192, 32, 1, 4}}, all{};
    const auto add = [&](const shape& x, op::rope::constants c, std::int64_t end) {
      s.add({s.x(x), s.integers({x[1]}, 0, double(end), &generator_of<generators::stray_ids>)}, c, true);
    };
    for (const std::int64_t D : {2, 6, 8, 64, 66, 128}) add({2, 5, 3, D}, all, 64);
    for (const std::int64_t S : {0, 1, 17, 65}) add({1, S, 2, 8}, all, 131072);
    add({1, 33, 5, 64}, llama, 131072);
    add({2, 9, 5, 16}, {.direction = -1, .heads = 1}, 4096);
    s.add({s.x({2, 40, 5, 64})}, llama, true);
    s.add({s.x({1, 72, 4, 32})}, op::rope::constants{.first = 8100, .base = 100, .scaling = {64, 4, 1, 4}}, true);
    s.add({s.x({3, 7, 6, 20})}, op::rope::constants{.heads = 4}, true);
    for (int k = 0; k < s.repeats(); ++k)
      add({s.size(k, 0, 1, 3), s.size(k, 1, 1, 40), s.size(k, 2, 2, 6), 2 * s.size(k, 3, 1, 40)}, {.heads = s.size(k, 4, 0, 2)}, 131072);
    const auto refuse = [&](const op::rope::constants& c, std::int64_t rows) {
      s.put({.kind = case_kind::refusal, .attr = c, .in = {s.x({1, 4, 2, 8}), s.integers({rows}, 0, 9, &generator_of<generators::whole>)}});
    };
    refuse(all, 3);
    refuse({.first = 2}, 4);
    refuse({.heads = 3}, 4);
    refuse({.scaling = {64, 4, 4, 1}}, 4);
  }
};

}  // namespace isotope::conform
