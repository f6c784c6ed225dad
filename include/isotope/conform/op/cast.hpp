#pragma once
#include "../../op/cast.hpp"
#include "../exact_spec.hpp"

namespace isotope::conform {

struct integer_ends {
  double low = 0, high = 0;
};

template <> struct op_spec<op::cast> : exact_spec {
  static constexpr std::array fields{attribute_field{.name = "to", .kind = attribute_kind::format, .slot = 0, .required = true}};
  static constexpr numeric_policy policy{.flushes_on_gpu = false, .nan = "in, then out; 0 in integers, true in bool"};
  static constexpr bool steps = true;
  static constexpr std::array boundary{0.0, -0.0, 1.9, -1.9, 3e9, infinity, nan};

  /// The least and greatest number of an integer format.
  static integer_ends ends(dtype t) {
    switch (t) {
      case dtype::u8: return {0, 255};
      case dtype::u16: return {0, 65535};
      case dtype::u32: return {0, 4294967295.0};
      case dtype::i64: return {-0x1p63, 0x1p63};
      default: return {-2147483648.0, 2147483647};
    }
  }
  static double converted(dtype to, double x) {
    if (to == dtype::boolean) return x != 0 ? 1 : 0;
    if (is_floating(to)) return nearest(to, x);
    if (std::isnan(x)) return 0;
    return std::fmin(std::fmax(std::trunc(x), ends(to).low), ends(to).high);
  }
  static void reference(const call& c, std::span<answer> y) {
    const dtype to = c.constants<op::cast>().to.type();
    y[0].resize(c.in[0].dims.count());
    for (std::int64_t i = 0; i < c.in[0].dims.count(); ++i) y[0].set(i, converted(to, c.in[0][i]));
  }
  /// dy in x's format.
  static void gradient(const call& c, std::span<const array> dy, std::span<answer> dx) {
    dx[0].resize(dy[0].dims.count());
    for (std::int64_t i = 0; i < dy[0].dims.count(); ++i) dx[0].set(i, nearest(c.in[0].type, dy[0][i]));
  }
  static void cases(case_sink& s) {
    const auto with = [](dtype t) { return op::cast::constants{.to = t}; };
    const auto add = [&](dtype from, dtype to, const shape& n, const generator* g, double low = 0, double high = 0, bool gradient = false) {
      if (from != to) s.add({operand_recipe{n, from, g, low, high, row_major}}, with(to), gradient);
    };
    constexpr dtype floats[] = {dtype::f32, dtype::bf16, dtype::f16};
    for (const dtype to : {dtype::f32, dtype::bf16, dtype::f16, dtype::i32, dtype::u8, dtype::boolean}) {
      add(dtype::bf16, to, {65536}, &generator_of<generators::all_of_16_bits>);
      add(dtype::f16, to, {65536}, &generator_of<generators::all_halves>);
      for (const dtype from : floats) {
        add(from, to, {24}, &generator_of<generators::specials>);
        add(from, to, {1025}, &generator_of<generators::uniform>, -300, 300, is_floating(to) && from == s.program());
        for (const shape& n : {shape{}, shape{0}, shape{1}, shape{64}, shape{65}})
          add(from, to, n, &generator_of<generators::uniform>, -9, 9);
      }
      add(dtype::f32, to, {4096}, &generator_of<generators::exponents>, -140, 127);
      add(dtype::i32, to, {4096}, &generator_of<generators::whole>, -40000000, 40000000);
      add(dtype::i32, to, {1024}, &generator_of<generators::near_ties>);
      add(dtype::u8, to, {256}, &generator_of<generators::whole>, 0, 256);
      add(dtype::boolean, to, {65}, &generator_of<generators::truth>);
      if (to != s.program()) s.add({ordered(s.x({17, 12}), {1, 0})}, with(to));
    }
    for (int k = 0; k < s.repeats(); ++k)
      add(s.program(), floats[(int(s.program() == dtype::f32) + k) % 3], {s.size(k, 0, 1, 3000)}, &generator_of<generators::exponents>, -10,
          10, true);
  }
};

}  // namespace isotope::conform
