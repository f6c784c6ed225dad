#pragma once
/// The sources of a case's numbers. A generator is a function of seed and index, so that a tensor of any size is a stream and nothing is stored.
#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <span>
#include <string_view>

#include "../core/philox.hpp"
#include "../core/philox_words.hpp"
#include "array.hpp"

namespace isotope::conform {

/// An operand to be filled: `position` among the operands of its case, numbers between `low` and `high` if the generator has a range.
struct drawing {
  std::uint64_t seed = 0;
  dtype type = dtype::f32;
  int position = 0;
  std::int64_t cols = 1;
  double low = -2, high = 2;
  double unit(std::uint64_t i) const { return double(unit_interval(philox(seed, i, std::uint32_t(position), 0)[0])); }
  /// Returns an integer below n.
  std::int64_t below(std::uint64_t i, std::int64_t n) const {
    return n <= 0 ? 0 : std::int64_t(philox(seed, i, std::uint32_t(position), 1)[0] % std::uint64_t(n));
  }
  /// The same for elements from `first` on.
  void units(std::uint64_t first, std::span<double> to) const {
    words(first, 0, to, [](std::uint32_t w) { return double(unit_interval(w)); });
  }
  void below(std::uint64_t first, std::int64_t n, std::span<double> to) const {
    words(first, 1, to, [n](std::uint32_t w) { return n <= 0 ? 0.0 : double(std::int64_t(w % std::uint64_t(n))); });
  }

 private:
  template <class F> void words(std::uint64_t first, std::uint32_t stream, std::span<double> to, F&& f) const {
    constexpr auto width = std::size_t(isotope::philox_words::width);
    for (std::size_t k = 0; k < to.size(); k += width) {
      isotope::philox_words w;
      for (std::size_t j = 0; j < width; ++j) {
        const std::uint64_t at = first + k + j;
        w.c0[j] = std::uint32_t(at);
        w.c1[j] = std::uint32_t(at >> 32);
        w.c2[j] = std::uint32_t(position);
        w.c3[j] = stream;
      }
      w.run(seed);
      double* some = to.data() + k;
      if (k + width <= to.size())  // a constant length, which compilers vectorise
        for (std::size_t j = 0; j < width; ++j) some[j] = f(w.c0[j]);
      else
        for (std::size_t j = 0; j < to.size() - k; ++j) some[j] = f(w.c0[j]);
    }
  }
};

/// A generator has a name, the formats it can fill, and element i of the stream before it is rounded to the format. It may have `fill`, too: several
/// consecutive elements, faster.
template <class G>
concept Generator = requires(const drawing& d, std::uint64_t i, dtype t) {
  { G::name } -> std::convertible_to<std::string_view>;
  { G::handles(t) } -> std::same_as<bool>;
  { G::number(d, i) } -> std::same_as<double>;
};

namespace generators {

struct of_floats {
  static bool handles(dtype t) { return is_floating(t); }
};

/// Uniform over [low, high).
struct uniform : of_floats {
  static constexpr std::string_view name = "uniform";
  static double number(const drawing& d, std::uint64_t i) { return d.low + (d.high - d.low) * d.unit(i); }
  static void fill(const drawing& d, std::uint64_t first, std::span<double> to) {
    d.units(first, to);
    for (double& x : to) x = d.low + (d.high - d.low) * x;
  }
};
/// Magnitudes uniform over the exponents of [2^low, 2^high), both signs.
struct exponents : of_floats {
  static constexpr std::string_view name = "exponents";
  static double number(const drawing& d, std::uint64_t i) {
    const double x = std::exp2(d.low + (d.high - d.low) * d.unit(2 * i));
    return d.below(2 * i + 1, 2) != 0 ? -x : x;
  }
};
/// Numbers that break arithmetic: zeros, infinities, NaN, subnormal and extreme numbers. The operands of a case form all pairs of them.
struct specials : of_floats {
  static constexpr std::string_view name = "specials";
  static constexpr std::array list{0.0,         -0.0,     1.0,       -1.0,     infinity, -infinity, nan,     0x1p-126,
                                   -0x1p-126,   0x1p-127, -0x1p-133, 0x1p-100, 0x1p100,  -0x1p100,  0x1p-24, 0x1.FEp127,
                                   -0x1.FEp127, 0.5,      -0.5,      2.0,      3.0,      -10.0,     88.0,    -104.0};
  static double number(const drawing& d, std::uint64_t i) {
    for (int k = 0; k < d.position; ++k) i /= list.size();
    return list[i % list.size()];
  }
};
/// Numbers below the least normal one of the format, of all its magnitudes there, both signs.
struct subnormals : of_floats {
  static constexpr std::string_view name = "subnormals";
  static double number(const drawing& d, std::uint64_t i) {
    const format_facts f = facts_of(d.type);
    const std::int64_t steps =
        std::int64_t(1) << (f.digits < 25 ? f.digits - 1 : 24);  // the numbers below the least normal one, or some of them
    const double x =
        double(1 + d.below(2 * i, steps - 1) % (std::int64_t(1) << (1 + i % std::uint64_t(f.digits < 25 ? f.digits - 1 : 24)))) *
        (f.least_normal() / double(steps));
    return d.below(2 * i + 1, 2) != 0 ? -x : x;
  }
};
/// Uniform over [low, high), but one in four is below the least normal number.
struct some_subnormals : of_floats {
  static constexpr std::string_view name = "some_subnormals";
  static double number(const drawing& d, std::uint64_t i) { return i % 4 == 1 ? subnormals::number(d, i) : uniform::number(d, i); }
};
/// 0 and -0.
struct signed_zeros : of_floats {
  static constexpr std::string_view name = "signed_zeros";
  static double number(const drawing& d, std::uint64_t i) { return d.below(i, 2) != 0 ? -0.0 : 0.0; }
};
/// Integers of 30 bits just off the middle between neighbours of 8 bits: rounding them to f32 first would make them ties.
struct near_ties {
  static constexpr std::string_view name = "near_ties";
  static bool handles(dtype t) { return t == dtype::i32 || t == dtype::f64; }
  static double number(const drawing& d, std::uint64_t i) {
    const double middle = double(257 + 2 * d.below(2 * i, 128)) * 0x1p21, x = middle + double(d.below(2 * i + 1, 3) - 1);
    return i % 2 == 0 ? x : -x;
  }
};
/// Every pattern of 16 bits as a number of that format: element i is pattern i.
template <class Half> struct every_pattern : of_floats {
  static double number(const drawing&, std::uint64_t i) {
    Half x;
    x.bits = std::uint16_t(i);
    return double(float(x));
  }
};
struct all_of_16_bits : every_pattern<bfloat16> {
  static constexpr std::string_view name = "all_of_16_bits";
};
struct all_halves : every_pattern<float16> {
  static constexpr std::string_view name = "all_halves";
};
/// Pairs x, -x with small remainders along the last axis: sums cancel to a thousandth of their terms.
struct cancelling : of_floats {
  static constexpr std::string_view name = "cancelling";
  static double number(const drawing& d, std::uint64_t i) {
    if (d.position > 0) return 1 + 0x1p-7 * double(d.below(i, 2));
    const double x = 1 + uniform::number({d.seed, d.type, d.position, 1, 0, 1}, i / 2);
    return i % 2 == 0 ? x : -x * (1 - 0x1p-9 * d.unit(i));
  }
};
/// Normally distributed with mean `low` and deviation `high`.
struct normal : of_floats {
  static constexpr std::string_view name = "normal";
  static double number(const drawing& d, std::uint64_t i) {
    const double a = (d.unit(2 * i) * 4294967295.0 + 1) / 4294967297.0, b = d.unit(2 * i + 1);
    return d.low + d.high * std::sqrt(-2 * std::log(a)) * std::cos(6.283185307179586 * b);
  }
};
/// Distinct, evenly spaced numbers in random order: extrema without ties.
struct distinct : of_floats {
  static constexpr std::string_view name = "distinct";
  static double number(const drawing& d, std::uint64_t i) {
    const std::uint64_t m = std::uint64_t(d.high);  // a prime, or at least odd: i -> 7919 i + c is a bijection below it
    return double((i * 7919 + d.seed % m) % m) / 16 - double(m) / 32;
  }
};
/// `low` everywhere.
struct constant {
  static constexpr std::string_view name = "constant";
  static bool handles(dtype) { return true; }
  static double number(const drawing& d, std::uint64_t) { return d.low; }
};
/// Integers in [low, high), with repetitions.
struct whole {
  static constexpr std::string_view name = "whole";
  static bool handles(dtype) { return true; }
  static double number(const drawing& d, std::uint64_t i) { return d.low + double(d.below(i, std::int64_t(d.high - d.low))); }
  static void fill(const drawing& d, std::uint64_t first, std::span<double> to) {
    d.below(first, std::int64_t(d.high - d.low), to);
    for (double& x : to) x += d.low;
  }
};
/// Like whole, with one in eight out of range: -1 or `high`.
struct stray_ids {
  static constexpr std::string_view name = "stray_ids";
  static bool handles(dtype t) { return !is_floating(t); }
  static double number(const drawing& d, std::uint64_t i) { return i % 8 == 5 ? (i % 16 == 5 ? -1 : d.high) : whole::number(d, i); }
};
/// Ascending integers from `low` to `high`, some of them equal: where sequences start that are packed one after another.
struct ascending {
  static constexpr std::string_view name = "ascending";
  static bool handles(dtype t) { return !is_floating(t) && t != dtype::boolean; }
  static double number(const drawing& d, std::uint64_t i) {
    return std::floor(
        std::fmin(d.high, d.low + (d.high - d.low) * (double(i % std::uint64_t(d.cols)) + 0.9 * d.unit(i)) / (double(d.cols) - 0.5)));
  }
};
/// Tokens of prompts that are packed one after another, as operands of attention over caches: the tokens of a piece are in one slot, at positions that follow one
/// another. Lengths are around 16 and 64, at which kernels change how they take a prompt.
struct prompt_token {
  static constexpr std::array<std::uint64_t, 8> lengths{65, 1, 16, 40, 130, 15, 64, 17};
  std::uint64_t piece = 0, place = 0;  // the place in the piece

  static constexpr std::uint64_t length(std::uint64_t piece) { return lengths[piece % lengths.size()]; }
  static constexpr prompt_token of(std::uint64_t i) {
    prompt_token t{0, i};
    for (; t.place >= length(t.piece); ++t.piece) t.place -= length(t.piece);
    return t;
  }
};
/// The slots of such tokens, in [low, high); that of one piece in eight is -1.
struct prompt_slots {
  static constexpr std::string_view name = "prompt_slots";
  static bool handles(dtype t) { return !is_floating(t) && t != dtype::boolean; }
  static double number(const drawing& d, std::uint64_t i) {
    const prompt_token t = prompt_token::of(i);
    return t.piece % 8 == 5 ? -1 : whole::number(d, t.piece);
  }
};
/// Their positions, in [0, high) if the piece is not longer than that. Every other piece begins at 0.
struct prompt_positions {
  static constexpr std::string_view name = "prompt_positions";
  static bool handles(dtype t) { return !is_floating(t) && t != dtype::boolean; }
  static double number(const drawing& d, std::uint64_t i) {
    const prompt_token t = prompt_token::of(i);
    const std::int64_t free = std::int64_t(d.high) - std::int64_t(prompt_token::length(t.piece));
    return double(t.piece % 2 == 1 || free <= 0 ? 0 : d.below(t.piece, free + 1)) + double(t.place);
  }
};
/// 1 on the diagonal of each matrix of `cols` columns, else 0.
struct identity {
  static constexpr std::string_view name = "identity";
  static bool handles(dtype) { return true; }
  static double number(const drawing& d, std::uint64_t i) {
    const auto n = std::uint64_t(d.cols);
    return i / n % n == i % n ? 1 : 0;
  }
};
/// Zeros and ones.
struct truth {
  static constexpr std::string_view name = "truth";
  static bool handles(dtype t) { return t == dtype::boolean; }
  static double number(const drawing& d, std::uint64_t i) { return double(d.below(i, 2)); }
};
/// Zeros, and -infinity for one in four, never in the first column.
struct key_mask : of_floats {
  static constexpr std::string_view name = "key_mask";
  static double number(const drawing& d, std::uint64_t i) { return i % std::uint64_t(d.cols) != 0 && d.below(i, 4) == 0 ? -infinity : 0; }
};

}  // namespace generators

/// Returns a generator by its name, for records that outlive a process.
struct generator {
  std::string_view name;
  bool (*handles)(dtype) = nullptr;
  void (*fill)(const drawing&, std::uint64_t first, std::span<double>) = nullptr;  // elements from `first` on, before rounding
};
namespace generators {
template <Generator G> void fill(const drawing& d, std::uint64_t first, std::span<double> to) {
  if constexpr (requires { G::fill(d, first, to); }) G::fill(d, first, to);
  else
    for (std::size_t k = 0; k < to.size(); ++k) to[k] = G::number(d, first + k);
}
}  // namespace generators
template <Generator G> inline constexpr generator generator_of{G::name, &G::handles, &generators::fill<G>};

inline constexpr std::array every_generator{
    generator_of<generators::uniform>,        generator_of<generators::exponents>,    generator_of<generators::specials>,
    generator_of<generators::all_of_16_bits>, generator_of<generators::all_halves>,   generator_of<generators::cancelling>,
    generator_of<generators::normal>,         generator_of<generators::distinct>,     generator_of<generators::constant>,
    generator_of<generators::whole>,          generator_of<generators::stray_ids>,    generator_of<generators::truth>,
    generator_of<generators::identity>,       generator_of<generators::key_mask>,     generator_of<generators::near_ties>,
    generator_of<generators::subnormals>,     generator_of<generators::signed_zeros>, generator_of<generators::some_subnormals>,
    generator_of<generators::ascending>,      generator_of<generators::prompt_slots>, generator_of<generators::prompt_positions>};

inline const generator* find_generator(std::string_view name) {
  for (const generator& g : every_generator)
    if (g.name == name) return &g;
  return nullptr;
}

/// Returns all numbers of an operand, exact in its format.
inline void fill_all(const generator& g, const drawing& d, std::span<double> to) {
  g.fill(d, 0, to);
  round_all(d.type, to);
}
/// Calls sink(i, number) for each of n elements, with numbers exact in the format.
template <class Sink> void stream(const generator& g, const drawing& d, std::int64_t n, Sink&& sink) {
  std::array<double, 256> piece;
  for (std::int64_t i = 0; i < n; i += std::int64_t(piece.size())) {
    const std::span<double> some(piece.data(), std::size_t(std::min<std::int64_t>(n - i, std::int64_t(piece.size()))));
    g.fill(d, std::uint64_t(i), some);
    round_all(d.type, some);
    for (std::size_t k = 0; k < some.size(); ++k) sink(i + std::int64_t(k), some[k]);
  }
}

}  // namespace isotope::conform
