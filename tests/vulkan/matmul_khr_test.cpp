// labels: matrices
#include "matrix_product.hpp"

using namespace isotope;
using namespace isotope::vulkan_test;

namespace matmul_khr_test {

using native = vulkan::kernel<op::matmul, precision::f32, kernels::native>;

class vulkan_matrix_units : public ::testing::Test {
 protected:
  void SetUp() override {
    if (here().matrix(dtype::f16) == nullptr) GTEST_SKIP() << "the device has no f16 matrices";
    if (!vulkan::shaders::matmul_khr_f16_plain.there()) GTEST_SKIP() << "the shader compiler of this build knows no matrices";
  }
  /// Runs p and expects that matrix units took it.
  static host product(const matrix_product& p, const vulkan::device_limits& f = here()) {
    auto r = run<native>(p, f);
    EXPECT_TRUE(ran(r, "matmul_khr_f16"));
    for (const auto& d : r.dispatches) EXPECT_EQ(d.set, "native");
    return r.y;
  }
};
TEST_F(vulkan_matrix_units, whole_and_ragged_tiles_in_every_memory_order) {
  const std::int64_t sizes[][3] = {{64, 64, 64}, {72, 40, 136}, {65, 33, 63}, {9, 8, 1000}};
  for (const auto& [M, K, N] : sizes)
    for (int order = 0; order < 4; ++order)
      for (const dtype out : {dtype::f16, dtype::f32}) {
        const auto p = two_matrices(M, K, N, order, dtype::f16, out);
        EXPECT_TRUE(right(p, product(p))) << described(p, order);
      }
}
TEST_F(vulkan_matrix_units, lines_that_start_anywhere) {
  for (const std::int64_t gap : {1, 4, 8})
    for (const std::int64_t skip : {0, 3, 8})
      for (int order = 0; order < 4; order += 3) {
        matrix_product p = two_matrices(40, 48, 64, order, dtype::f16, dtype::f32, gap);
        p.skip = skip;
        EXPECT_TRUE(right(p, product(p))) << described(p, order) << " gap " << gap << " skip " << skip;
      }
}
TEST_F(vulkan_matrix_units, parts_of_k_add_up) {
  for (const std::uint32_t parts : {1u, 3u})
    for (int order = 0; order < 4; ++order)
      for (const std::int64_t more : {0, 5}) {
        vulkan::device_limits f = here();
        f.switches.split_k = parts;
        matrix_product p = two_matrices(64 + more, 800 + more, 64 + more, order, dtype::f16, dtype::f32);
        p.into = op_test::random(p.dims(), dtype::f32, 5);
        p.alpha = 0.5;
        EXPECT_TRUE(right(p, product(p, f))) << described(p, order) << " in " << parts;
      }
}
TEST_F(vulkan_matrix_units, batches_of_every_kind) {
  for (const auto& [a, b] : batch_axes)
    for (const bool with_c : {false, true}) {
      const auto p = batched(a, b, 10, dtype::f16, with_c);
      EXPECT_TRUE(right(p, product(p))) << described(p);
    }
}
TEST_F(vulkan_matrix_units, sums_that_cancel_at_widths_of_models) {
  for (const std::int64_t N : {768, 769, 1024, 3072, 50257}) {
    const auto p = alternating(12, 8, N, 2, dtype::f16);
    EXPECT_TRUE(right(p, product(p))) << described(p, 2);
  }
}
TEST_F(vulkan_matrix_units, long_sums_that_cancel) {
  for (const std::int64_t K : {768, 769, 1024, 3072, 50257})
    for (int order = 0; order < 4; order += 3) {
      const auto p = alternating(10, K, 12, order, dtype::f16);
      EXPECT_TRUE(right(p, product(p))) << described(p, order);
    }
}
TEST_F(vulkan_matrix_units, an_epilogue_gives_the_bits_of_separate_ops) {
  vulkan::device_limits f = here();
  compare_fused<native>(two_matrices(40, 48, 64, 2, dtype::f16, dtype::f16), f);
  f.switches.split_k = 2;
  compare_fused<native>(two_matrices(40, 512, 37, 2, dtype::f16, dtype::f32), f);
}
// Drivers may truncate where a matrix of sums becomes one of 16 bits; one product a sum leaves no doubt what nearest is.
TEST_F(vulkan_matrix_units, results_of_16_bits_are_the_nearest) {
  const auto p = two_matrices(64, 1, 64, 0, dtype::f16, dtype::f16);
  const host y = product(p);
  for (std::int64_t m = 0; m < 64; ++m)
    for (std::int64_t n = 0; n < 64; ++n) EXPECT_EQ(y[m * 64 + n], op_test::rounded(dtype::f16, p.a[m] * p.b[n]));
}
/// Each tile of the table, with as many fragments a subgroup as on devices with matrices of 16 x 16 x 16, compiled as for processors.
class vulkan_matrix_tiles : public vulkan_matrix_units, public ::testing::WithParamInterface<std::size_t> {
 protected:
  static inline vulkan::matmul_khr_tile tile;
  static inline std::int64_t parts;

  void SetUp() override {
    vulkan_matrix_units::SetUp();
    if (IsSkipped()) GTEST_SKIP() << "no matrix units to run a tile on";
    tile = vulkan::matmul_khr_tile::all[GetParam()];
    tile.light = true;
    parts = 1;
    const auto unit = *here().matrix(dtype::f16);
    tile.m = tile.m / 16 * unit.m;
    tile.n = tile.n / 16 * unit.n;
    tile.slab = tile.slab / 16 * unit.k;
    if (!tile.runs(unit, here())) GTEST_SKIP() << "the device's subgroups or shared memory do not fit the tile";
  }
  static void record(const vulkan::launch& l, vulkan::recording& r) { EXPECT_TRUE(native::record_as(l, r, tile, parts)); }
  static void expect_right(const matrix_product& p, int order) {
    const auto r = run<native>(p, here(), record);
    for (const auto& d : r.dispatches) {
      EXPECT_EQ(d.set, "native");
      if (d.code->name.starts_with("matmul_khr")) { EXPECT_EQ(d.specialization.words().at(19), tile.m); }
    }
    EXPECT_TRUE(right(p, r.y)) << described(p, order) << " in " << parts << " parts, tile " << tile.m << " x " << tile.n;
  }
};
TEST_P(vulkan_matrix_tiles, are_right_in_every_memory_order) {
  const std::int64_t M = tile.m, N = tile.n, K = 2 * tile.slab;
  for (int order = 0; order < 4; ++order) {
    for (const dtype out : {dtype::f16, dtype::f32}) expect_right(two_matrices(M, K, N, order, dtype::f16, out), order);
    expect_right(two_matrices(M + 8, K + 8, N + 24, order, dtype::f16, dtype::f16), order);  // rows of octets that end within a tile
    expect_right(two_matrices(M + 3, K - 5, N - 3, order, dtype::f16, dtype::f16), order);   // rows that start anywhere
    expect_right(two_matrices(M - 1, 9, N + 1, order, dtype::f16, dtype::f16), order);
  }
}
TEST_P(vulkan_matrix_tiles, take_lines_that_start_anywhere_with_nan_around) {
  for (const int order : {1, 2}) {
    matrix_product p = two_matrices(tile.m + 8, tile.slab + 8, tile.n + 8, order, dtype::f16, dtype::f16, 8);
    p.skip = 3;
    expect_right(p, order);
  }
}
TEST_P(vulkan_matrix_tiles, add_parts_of_k_batches_and_what_was_there) {
  parts = 3;
  for (const int order : {1, 2}) {
    matrix_product p = two_matrices(tile.m, 768, tile.n + 5, order, dtype::f16, dtype::f32);
    p.into = op_test::random(p.dims(), dtype::f32, 5);
    p.alpha = 0.5;
    expect_right(p, order);
  }
  parts = 1;
  expect_right(batched({3}, {3}, tile.m + 1, dtype::f16, false), 0);
  expect_right(batched({3}, {3}, tile.m + 1, dtype::f16, true), 0);
}
TEST_P(vulkan_matrix_tiles, run_epilogues) {
  compare_fused<native>(two_matrices(tile.m + 8, 48, tile.n + 8, 2, dtype::f16, dtype::f16), here(), record);
  compare_fused<native>(two_matrices(tile.m, 48, tile.n - 3, 0, dtype::f16, dtype::f16), here(), record);
}
TEST_P(vulkan_matrix_tiles, round_results_of_16_bits_to_nearest) {
  for (const std::int64_t N : {std::int64_t(tile.n), std::int64_t(tile.n) - 3}) {
    matrix_product p = two_matrices(tile.m, 1, N, 0, dtype::f16, dtype::f16);
    p.alpha = 0.75;
    const host y = run<native>(p, here(), record).y;
    for (std::int64_t m = 0; m < p.a.dims[0]; ++m)
      for (std::int64_t n = 0; n < N; ++n) ASSERT_EQ(y[m * N + n], op_test::rounded(dtype::f16, 0.75 * p.a[m] * p.b[n]));
  }
}
INSTANTIATE_TEST_SUITE_P(of_the_table, vulkan_matrix_tiles, ::testing::Range(std::size_t(0), vulkan::matmul_khr_tile::all.size()));

TEST_F(vulkan_matrix_units, garbage_behind_an_operand_stays_out) {
  for (int order = 0; order < 4; ++order) {  // the memory around operands, and in the gaps between their lines, is NaN
    const auto p = two_matrices(33, 31, 30, order, dtype::f16, dtype::f32, 2);
    EXPECT_TRUE(right(p, product(p))) << described(p, order);
  }
}

TEST(vulkan_matmul_native, what_matrix_units_do_not_take_runs_as_portable_and_says_why) {
  const auto reason = [](const matrix_product& p, const vulkan::device_limits& f) {
    const auto r = run<native>(p, f);
    EXPECT_TRUE(right(p, r.y));
    EXPECT_EQ(r.dispatches.at(0).set, "portable");
    return std::string(r.dispatches.at(0).reason);
  };
  const auto half = two_matrices(16, 16, 16, 0, dtype::f16, dtype::f16);
  vulkan::device_limits none = here();
  none.matrices.clear();
  EXPECT_EQ(reason(two_matrices(16, 16, 16, 0, dtype::f32, dtype::f32), here()), "no matrix type for f32 operands");
  EXPECT_EQ(reason(two_matrices(4, 16, 16, 0, dtype::f16, dtype::f16), here()), "few rows are bound by bytes");
  EXPECT_EQ(reason(half, none), "the device has no matrices of this format with f32 sums");
  vulkan::device_limits off = here();
  off.switches.no_matrix_units = true;
  EXPECT_EQ(reason(half, off), "matrix units are switched off");
  if (vulkan::shaders::matmul_khr_f16_plain.there()) {
    vulkan::device_limits narrow = here();
    narrow.matrices = {{8, 8, 8, dtype::f16, dtype::f32}};
    narrow.shared_bytes = 1024;
    EXPECT_EQ(reason(half, narrow), "the device's matrices, subgroups or shared memory fit no tile");
  }
}

}  // namespace matmul_khr_test
