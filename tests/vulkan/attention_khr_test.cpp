/// Attention on matrix units, in f16 on whatever device has such matrices, against f64.
#include "../op/harness.hpp"

#include "../op/attention_problem.hpp"

namespace isotope::op_test {
namespace attention_khr_test {

using native = on<precision::bf16, kernels::native>;  // kernels look at the format of the operands, not at the program's
using sizes = attention_problem::sizes;

const vulkan::device_limits& here() { return vulkan_test::test_device().context->physical().limits; }

struct run_result {
  std::vector<host> y, dx;
};
std::vector<host> forward(const attention_problem& p, const std::vector<host>& in, op::attention::constants a) {
  const auto& z = p.z;
  a.scale = p.scale;
  const std::vector<host> out = {full({z.B, z.S, z.H * z.D}, p.q.type, nan), full({z.B, z.H, z.S}, dtype::f32, nan)};
  return launch(native::entry<op::attention>(), in, out, a, drawing(p), -1);
}
run_result run(const attention_problem& p, const host& dy, bool packed = false, std::int64_t gap = 0) {
  auto a = p.attr;
  a.packed = packed;
  a.scale = p.scale;
  std::vector<host> in = p.operands();
  if (packed) in.erase(in.begin(), in.begin() + 3), in.insert(in.begin(), laid_out(p.packed(), {0, 1, 2}, gap));
  run_result r;
  r.y = forward(p, in, a);
  std::vector<host> dx;
  for (std::size_t k = 0; k < (packed ? 1u : 3u); ++k) dx.push_back(full(in[k].dims, in[k].type, nan));
  in.insert(in.end(), {r.y[0], r.y[1], dy});
  r.dx = launch(native::entry<op::attention_grad>(), in, dx, a, drawing(p), -1);
  return r;
}

/// Mean square error over the mean square of what is expected; NaN where anything is not a number.
double relative_square_error(const host& y, const std::vector<double>& expected) {
  double error = 0, size = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    error += (y.at[i] - expected[i]) * (y.at[i] - expected[i]);
    size += expected[i] * expected[i];
  }
  return error / size;
}
/// Rounding to f16 errs by at most 2^-11 of a number, its mean square is below 2^-22 / 3 of the number's. The weights, y, dS and the result are
/// rounded, each by itself; dP - delta may cancel half of its size, which doubles the part of y in it: (1 + 4 + 1 + 1) 2^-22 / 3.
constexpr double bound = 7 * 0x1p-22 / 3;

/// Dropout scales what it keeps, errors and all, and where it drops dP nothing cancels.
void expect_right(const sizes& z, bool packed = false, std::int64_t gap = 0, double dropout = 0) {
  const auto p = attention_problem(z, dtype::f16, dtype::f32).dropping(dropout);
  const host dy = random({z.B, z.S, z.H * z.D}, dtype::f16, 4);
  const auto r = run(p, dy, packed, gap);
  const auto e = attention_by_definition(p, &dy);
  EXPECT_LE(relative_square_error(r.y.at(0), e.y), bound);
  // Scores of at most 4 D scale are sums of D products, with a rounding each inside of the units and one outside.
  EXPECT_TRUE(near(r.y.at(1), e.lse, 4 * double(z.D) * p.scale * double(2 * z.D + 8) * 0x1p-24));
  if (packed) {
    attention_problem g = p;
    g.q.at = e.dq, g.k.at = e.dk, g.v.at = e.dv;
    EXPECT_LE(relative_square_error(r.dx.at(0), g.packed().at), bound);
  } else {
    EXPECT_LE(relative_square_error(r.dx.at(0), e.dq), bound);
    EXPECT_LE(relative_square_error(r.dx.at(1), e.dk), bound);
    EXPECT_LE(relative_square_error(r.dx.at(2), e.dv), bound);
  }
}

/// The dispatches of a step on operands that are nowhere.
std::vector<vulkan::dispatch> recorded(const sizes& z, dtype t, const vulkan::device_limits& f, std::int64_t misplaced = 0,
                                       double scale = 0.25, double dropout = 0) {
  const auto p = attention_problem(z, t, dtype::f32).dropping(dropout);
  auto given = p.attr;
  given.scale = scale;
  const attributes a = given;
  const auto view = [&](std::uint64_t at, const host& x) {
    return vulkan::view{(at << 32) + std::uint64_t(misplaced), x.span() * size_of(x.type), x.dims, x.strides, x.type};
  };
  const std::vector<vulkan::view> in = {view(1, p.q), view(2, p.k), view(3, p.v)},
                                  out = {view(4, p.q), view(5, full({z.B, z.H, z.S}, dtype::f32, 0))};
  auto& d = vulkan_test::test_device();
  vulkan::constant_pool const_pool(d.context);
  vulkan::recording r(const_pool, *d.pipelines);
  vulkan::launch l;
  l.in = in, l.out = out, l.attr = &a, l.device = &f;
  vulkan::enter_set(r, kernels::native::name);
  native::kernel<op::attention>::record(l, r);
  return r.dispatches;
}

class vulkan_matrix_attention : public ::testing::Test {
 protected:
  void SetUp() override {
    if (vulkan::matrix_side(here(), dtype::f16) == 0) GTEST_SKIP() << "the device has no square f16 matrices";
    if (!vulkan::shaders::attention_khr_f16.there()) GTEST_SKIP() << "the shader compiler of this build knows no matrices";
    const auto all = recorded({1, 64, 64, 1, 1, 32, true, false}, dtype::f16, here());
    ASSERT_EQ(all.size(), 1u);
    ASSERT_EQ(all[0].set, "native");
    ASSERT_EQ(all[0].code, &vulkan::shaders::attention_khr_f16);
  }
};
TEST_F(vulkan_matrix_attention, packed_causal_heads_that_share_keys_over_ragged_tiles) {
  expect_right({2, 70, 70, 2, 1, 32, true, false}, true, 8);
}
TEST_F(vulkan_matrix_attention, masked_keys_and_more_of_them_than_queries) { expect_right({2, 40, 75, 2, 2, 16, false, true}); }
TEST_F(vulkan_matrix_attention, a_few_last_queries_of_many_keys) { expect_right({1, 3, 130, 2, 2, 16, true, false}); }
TEST_F(vulkan_matrix_attention, rows_wider_than_a_strip_and_no_multiple_of_it) { expect_right({1, 20, 20, 1, 1, 40, true, false}, true); }

// Windows within a matrix, of a tile, over several of them; the first keys of a long past are nobody's.
TEST_F(vulkan_matrix_attention, in_a_window_of_any_length) {
  for (const std::int64_t window : {2, 3, 8, 16, 17, 33, 64, 100}) {
    SCOPED_TRACE(window);
    expect_right({2, 130, 130, 2, 1, 32, true, false, window}, true, 8);
    expect_right({1, 37, 200, 2, 2, 16, true, false, window});
  }
  expect_right({1, 70, 150, 2, 1, 32, true, false, 20}, false, 0, 0.3);
}
// Scores have no gradient there: y is v.
TEST_F(vulkan_matrix_attention, in_a_window_of_one_key_gives_its_value) {
  const auto p = attention_problem({2, 70, 70, 2, 2, 16, true, false, 1}, dtype::f16, dtype::f32);
  EXPECT_LE(relative_square_error(forward(p, p.operands(), p.attr).at(0), p.v.at), bound);
}

TEST_F(vulkan_matrix_attention, drops_the_documented_probabilities_on_matrix_units) {
  const auto all = recorded({1, 64, 64, 1, 1, 32, true, false}, dtype::f16, here(), 0, 0.25, 0.3);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].code, &vulkan::shaders::attention_khr_f16);
  EXPECT_EQ(all[0].reads.size(), 4u) << "seed and counter are read";
  expect_right({2, 70, 70, 2, 1, 32, true, false}, true, 8, 0.3);
  expect_right({2, 40, 75, 2, 2, 16, false, true}, false, 0, 0.3);
  expect_right({1, 3, 130, 2, 2, 16, true, false}, false, 0, 0.6);
  expect_right({1, 20, 20, 1, 1, 40, true, false}, true, 0, 0.1);
}
/// Equal scores and values that tell the keys apart: what y shows is which of them are dropped.
TEST_F(vulkan_matrix_attention, drops_no_other_probability) {
  const std::int64_t n = 40;
  auto p = attention_problem({1, n, n, 1, 1, n, false, false}, dtype::f16, dtype::f32).dropping(0.25);
  std::fill(p.q.at.begin(), p.q.at.end(), 0);
  for (std::int64_t t = 0; t < n; ++t)
    for (std::int64_t d = 0; d < n; ++d) p.v.at[std::size_t(t * n + d)] = t == d ? 1 : 0;
  const auto y = forward(p, p.operands(), p.attr);
  for (std::int64_t s = 0; s < n; ++s)
    for (std::int64_t t = 0; t < n; ++t) ASSERT_NEAR(y.at(0)[s * n + t] * double(n), p.share(0, 0, s, t), 0x1p-9) << s << ' ' << t;
}

TEST_F(vulkan_matrix_attention, a_query_whose_keys_are_all_masked_gives_zeros_and_no_gradient) {
  attention_problem p({2, 10, 20, 1, 1, 16, false, true}, dtype::f16, dtype::f32);
  for (std::size_t i = 0; i < p.mask.at.size(); ++i) p.mask.at[i] = i < 20 ? -infinity : 0;
  const auto r = run(p, random({2, 10, 16}, dtype::f16, 4));
  for (std::int64_t i = 0; i < 160; ++i) ASSERT_EQ(r.y.at(0)[i], 0);
  for (std::int64_t i = 0; i < 10; ++i) EXPECT_EQ(r.y.at(1)[i], -infinity);
  for (std::size_t k = 0; k < 3; ++k)
    for (std::int64_t i = 0; i < (k == 0 ? 160 : 320); ++i) ASSERT_EQ(r.dx.at(k)[i], 0) << k;
}
/// One query and key element: scores are q k, rising by 40 from tile to tile, after a first tile that lies far below zero.
TEST_F(vulkan_matrix_attention, maxima_that_come_late_and_nan_stay_in_their_rows) {
  const std::int64_t T = 150, D = 16;
  attention_problem p({1, 24, T, 1, 1, D, false, false}, dtype::f16, dtype::f32, 1);
  std::fill(p.q.at.begin(), p.q.at.end(), 0);
  std::fill(p.k.at.begin(), p.k.at.end(), 0);
  for (std::int64_t s = 0; s < 24; ++s) p.q.at[std::size_t(s * D)] = s == 5 ? nan : s % 2 == 0 ? 16 : -16;
  for (std::int64_t t = 0; t < T; ++t) p.k.at[std::size_t(t * D)] = -64 + double(t) * 0.5;
  const auto r = run(p, full({1, 24, D}, dtype::f16, 0));
  for (std::int64_t s = 0; s < 24; ++s)
    for (std::int64_t d = 0; d < D; ++d) {
      const double y = r.y.at(0)[s * D + d];
      if (s == 5) ASSERT_TRUE(std::isnan(y));
      else {  // the weight of the best key is 1 - e^-8 or more
        ASSERT_NEAR(y, p.v[(s % 2 == 0 ? T - 1 : 0) * D + d], 4 * std::exp(-8.0) + 0x1p-9) << s;
      }
    }
  EXPECT_TRUE(std::isnan(r.y.at(1)[5]));
}

TEST(vulkan_matrix_attention_check, finds_a_probability_dropped_that_should_not_be) {
  auto p = attention_problem({1, 20, 20, 1, 1, 16, true, false}, dtype::f16, dtype::f32).dropping(0.3);
  const auto e = attention_by_definition(p);
  ++p.stream;
  EXPECT_GT(relative_square_error(host(p.q.dims, dtype::f16, attention_by_definition(p).y), e.y), bound);
}
TEST(vulkan_matrix_attention_check, finds_rows_that_changed_places) {
  const attention_problem p({1, 20, 20, 1, 1, 16, true, false}, dtype::f16, dtype::f32);
  auto e = attention_by_definition(p);
  host y(p.q.dims, dtype::f16, e.y);
  EXPECT_LE(relative_square_error(y, e.y), bound);
  for (std::size_t d = 0; d < 16; ++d) std::swap(y.at[18 * 16 + d], y.at[19 * 16 + d]);
  EXPECT_GT(relative_square_error(y, e.y), bound);
}

TEST(vulkan_attention_native, says_why_it_runs_as_portable) {
  vulkan::device_limits f = here();
  f.matrices = {{8, 8, 8, dtype::f16, dtype::f32}};
  const sizes z{1, 8, 8, 1, 1, 32, true, false};
  const auto reason = [&](const sizes& s, dtype t, std::int64_t misplaced = 0, double scale = 0.25) {
    const auto all = recorded(s, t, f, misplaced, scale);
    EXPECT_EQ(all.at(0).set, "portable");
    return std::string(all.at(0).reason);
  };
  EXPECT_EQ(reason(z, dtype::f32), "matrix units multiply no f32");
  EXPECT_EQ(reason(z, dtype::bf16), "the device has no square matrix product of this format");
  EXPECT_EQ(reason({1, 8, 8, 1, 1, 20, true, false}, dtype::f16), "the head size is not a multiple of the matrix side up to 128");
  EXPECT_EQ(reason({1, 8, 8, 1, 1, 136, true, false}, dtype::f16), "the head size is not a multiple of the matrix side up to 128");
  EXPECT_EQ(reason(z, dtype::f16, 2), "rows do not start at multiples of 16 bytes");
  EXPECT_EQ(reason(z, dtype::f16, 0, -1), "the scale of the scores is not positive");
  f.switches.no_matrix_units = true;
  EXPECT_EQ(reason(z, dtype::f16), "matrix units are switched off");
}

}  // namespace attention_khr_test
}  // namespace isotope::op_test
