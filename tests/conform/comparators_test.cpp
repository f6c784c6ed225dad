/// Comparators must accept correct outputs, and reject outputs with a single error.
#include "toy.hpp"

#include <cstdio>
#include <utility>

namespace isotope::conform {
namespace comparators_test {

/// The output of a kernel, the expected output, and how they are compared.
struct sample {
  array y;
  answer e;
  comparison by = comparison::scaled;
  conditions on{};
  bool mean_square = false;
  answer flushed{};  // the expected output if subnormal operands are flushed to zero; empty: none

  bool passes() const {
    if (y.at.size() != e.value.size()) return false;  // batch_runner refuses this, see runner_test
    return compare(y, e, by, on, mean_square, flushed.value.empty() ? nullptr : &flushed).passes();
  }
  double& operator[](std::size_t i) { return y.at[i]; }
};

/// 1000 correct numbers in [1, 2) of the format, with a tolerance of `units` units in the last place.
sample numbers(dtype t, comparison by, double units = 0, std::int64_t n = 1000) {
  sample s{array(shape{n}, t), {}, by};
  s.on.program = t == dtype::bf16 ? dtype::bf16 : dtype::f32;
  s.e.resize(n);
  stream(generator_of<generators::uniform>, {7, t, 0, 1, 1, 2}, n, [&](std::int64_t i, double x) {
    s.y.at[std::size_t(i)] = x;
    s.e.set(i, x, units * ulp(t, x));
  });
  return s;
}
sample exact(dtype t = dtype::f32) {
  sample s = numbers(t, comparison::exact);
  for (const auto& [i, x] : {std::pair(3, 0.0), std::pair(4, -0.0), std::pair(5, infinity), std::pair(6, -infinity), std::pair(7, nan),
                             std::pair(8, double(std::numeric_limits<float>::max()))})
    s[std::size_t(i)] = s.e.value[std::size_t(i)] = nearest(t, x);
  return s;
}
sample integers(dtype t, std::initializer_list<double> list) {
  sample s{array(shape{std::int64_t(list.size())}, t), {}, comparison::exact};
  s.e.resize(std::int64_t(list.size()));
  std::size_t i = 0;
  for (const double x : list) s.e.value[i] = s.y.at[i] = x, s.e.slack[i] = 5, ++i;
  return s;
}
/// A million numbers within their tolerance, and a limit on the mean square error.
sample many(double nmse) {
  sample s = numbers(dtype::f32, comparison::scaled, 1e7, 1000000);
  s.e.nmse = nmse;
  s.mean_square = true;
  return s;
}
double up(double x, double units = 1) { return x + units * ulp(dtype::f32, x); }
/// Applies f to `n` numbers from element `i` on.
template <class F> void change(sample& s, std::size_t i, std::size_t n, F&& f) {
  for (std::size_t k = i; k < i + n; ++k) s[k] = f(s[k]);
}

struct broken {
  const char* what;
  sample (*sound)();
  void (*breaks)(sample&);
};
constexpr auto e_f32 = [] { return exact(); };
constexpr auto e_bf16 = [] { return exact(dtype::bf16); };
constexpr auto ulp_4 = [] { return numbers(dtype::f32, comparison::scaled, 4); };
constexpr auto scaled = [] { return numbers(dtype::f32, comparison::scaled, 20); };
constexpr auto rounded_once = [] { return numbers(dtype::bf16, comparison::scaled); };
constexpr auto flushing = [] {
  sample s = numbers(dtype::f32, comparison::scaled);
  s.on.gpu = true;
  s.flushed = s.e;
  s.e.value[2] = s[2] = 0x1p-100;
  s.flushed.value[2] = 0;
  return s;
};
constexpr auto truths = [] { return integers(dtype::boolean, {0, 1, 1, 0}); };
constexpr auto classes = [] { return integers(dtype::i32, {0, 7, 16777217, -3}); };

constexpr broken list[] = {
    {"exact: NaN in one place", e_f32, [](sample& s) { s[500] = nan; }},
    {"exact: a number where NaN belongs", e_f32, [](sample& s) { s[7] = 0; }},
    {"exact: one unit in the last place", e_f32, [](sample& s) { s[999] = up(s[999]); }},
    {"exact: -0 for 0", e_f32, [](sample& s) { s[3] = -0.0; }},
    {"exact: 0 for -0", e_f32, [](sample& s) { s[4] = 0; }},
    {"exact: the largest number for infinity", e_f32, [](sample& s) { s[5] = s[8]; }},
    {"exact: infinity for the largest number", e_f32, [](sample& s) { s[8] = infinity; }},
    {"exact: infinities of the wrong sign", e_f32, [](sample& s) { std::swap(s[5], s[6]); }},
    {"exact: two neighbours change places", e_f32, [](sample& s) { std::swap(s[500], s[501]); }},
    {"exact: all is one place late", e_f32, [](sample& s) { std::rotate(s.y.at.begin() + 10, s.y.at.end() - 1, s.y.at.end()); }},
    {"exact: a row of zeros", e_f32, [](sample& s) { change(s, 960, 40, [](double) { return 0.0; }); }},
    {"exact: the last element was not written", e_f32, [](sample& s) { s[999] = nan; }},
    {"exact: nothing was written", e_f32, [](sample& s) { change(s, 0, 1000, [](double) { return nan; }); }},
    {"exact in 16 bits: one unit in the last place", e_bf16, [](sample& s) { s[999] += ulp(dtype::bf16, s[999]); }},
    {"i32: off by one, whatever the slack", classes, [](sample& s) { s[1] += 1; }},
    {"i32: by way of f32", classes, [](sample& s) { s[2] = double(float(s[2])); }},
    {"boolean: the other one", truths, [](sample& s) { s[3] = 1; }},
    {"boolean: true is 255", truths, [](sample& s) { s[1] = 255; }},
    {"ulp: one unit over the limit", ulp_4, [](sample& s) { s[17] = up(s[17], 5); }},
    {"scaled: NaN in one place", scaled, [](sample& s) { s[0] = nan; }},
    {"scaled: infinity in one place", scaled, [](sample& s) { s[0] = infinity; }},
    {"scaled: NaN expected, a number given",
     [] {
       sample s = scaled();
       s[9] = s.e.value[9] = nan;
       return s;
     },
     [](sample& s) { s[9] = 1; }},
    {"scaled: off by 1.01 bounds", scaled, [](sample& s) { s[77] += 1.01 * element_bounds(dtype::f32, s.on).of(s.e, 77); }},
    {"scaled: off by 1.01 bounds downwards", scaled, [](sample& s) { s[77] -= 1.01 * element_bounds(dtype::f32, s.on).of(s.e, 77); }},
    {"scaled: two neighbours change places", scaled, [](sample& s) { std::swap(s[500], s[501]); }},
    {"scaled: a sign", scaled, [](sample& s) { s[1] = -s[1]; }},
    {"scaled: a row of zeros", scaled, [](sample& s) { change(s, 960, 40, [](double) { return 0.0; }); }},
    {"scaled: all a hundred-thousandth too large", scaled, [](sample& s) { change(s, 0, 1000, [](double x) { return x * (1 + 1e-5); }); }},
    {"scaled: nothing was written", scaled, [](sample& s) { change(s, 0, 1000, [](double) { return nan; }); }},
    {"scaled: an element too few", scaled, [](sample& s) { s.y.at.pop_back(); }},
    {"scaled: an element too many", scaled, [](sample& s) { s.y.at.push_back(1); }},
    {"scaled: a slack that is no number", scaled, [](sample& s) { s.e.slack[5] = nan; }},
    {"16 bits: cut off, not rounded", rounded_once,
     [](sample& s) {
       for (std::size_t i = 0; i < 1000; ++i) s.e.value[i] += 0.99 * ulp(dtype::bf16, s[i]);
     }},
    {"subnormal operands: neither kept nor zero", flushing, [](sample& s) { s[2] = 0x1p-101; }},
    {"mean square: one element of a million", [] { return many(1e-12); }, [](sample& s) { s[123456] += 0.01; }},
    {"mean square: all a little off, both ways", [] { return many(1e-12); },
     [](sample& s) {
       for (std::size_t i = 0; i < s.y.at.size(); ++i) s[i] *= i % 2 == 0 ? 1 + 2e-6 : 1 - 2e-6;
     }},
};

TEST(conform_comparators, sound_outputs_pass) {
  for (const broken& b : list) EXPECT_TRUE(b.sound().passes()) << b.what;
}
TEST(conform_comparators, every_broken_output_is_rejected) {
  std::size_t rejected = 0;
  for (const broken& b : list) {
    sample s = b.sound();
    b.breaks(s);
    const bool passes = s.passes();
    EXPECT_FALSE(passes) << b.what;
    rejected += passes ? 0 : 1;
  }
  std::printf("comparators: %zu of %zu broken outputs rejected\n", rejected, std::size(list));
  EXPECT_GE(std::size(list), 30u);
}
TEST(conform_comparators, sound_limits_are_not_too_tight) {
  sample s = scaled();
  s[77] += 0.99 * element_bounds(dtype::f32, s.on).of(s.e, 77);
  EXPECT_TRUE(s.passes());
  sample f = flushing();
  f[2] = 0;
  EXPECT_TRUE(f.passes()) << "a gpu may flush subnormal operands to zero";
  sample m = many(1e-12);
  m[123456] += 1e-4;  // a square error of 1e-8, where 2.3e6 is the sum of squares
  EXPECT_TRUE(m.passes());
}

}  // namespace comparators_test
}  // namespace isotope::conform
