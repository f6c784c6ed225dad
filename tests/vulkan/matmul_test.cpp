#include "matrix_product.hpp"

using namespace isotope;
using namespace isotope::vulkan_test;

namespace matmul_test {

using portable = vulkan::kernel<op::matmul, precision::f32, kernels::portable>;
using vulkan::matmul_split;

TEST(vulkan_matmul, whole_and_ragged_tiles_in_every_memory_order_and_format) {
  const std::int64_t sizes[][3] = {{64, 64, 64}, {65, 33, 63}, {9, 100, 70}};
  for (const auto& [M, K, N] : sizes)
    for (int order = 0; order < 4; ++order)
      for (const dtype in : {dtype::f32, dtype::bf16, dtype::f16}) {
        if (in == dtype::f16 && order % 3 != 0) continue;
        const auto p = two_matrices(M, K, N, order, in, in);
        const auto r = run<portable>(p, here());
        EXPECT_TRUE(ran(r, "matmul_plain"));
        EXPECT_TRUE(right(p, r.y)) << described(p, order);
      }
}
TEST(vulkan_matmul, operands_of_two_formats) {
  matrix_product p = two_matrices(20, 40, 24, 2, dtype::f32, dtype::f32);
  p.b.type = dtype::bf16;
  for (double& x : p.b.at) x = op_test::rounded(dtype::bf16, x);
  EXPECT_TRUE(right(p, run<portable>(p, here()).y));
}
TEST(vulkan_matmul, every_tile_in_every_memory_order) {
  static vulkan::matmul_tile tile;
  const auto record = [](const vulkan::launch& l, vulkan::recording& r) { EXPECT_TRUE(portable::record_as(l, r, tile, 1)); };
  for (const auto& t : vulkan::matmul_tile::all) {
    tile = t;
    for (int order = 0; order < 4; ++order)
      for (const std::int64_t more : {0, 6}) {
        const auto p = two_matrices(tile.size + more, 2 * tile.slab + more, tile.size + more, order, dtype::f32, dtype::f32);
        const auto r = run<portable>(p, here(), record);
        EXPECT_EQ(r.dispatches.at(0).specialization.words().at(19), tile.size);
        EXPECT_TRUE(right(p, r.y)) << described(p, order);
      }
    compare_fused<portable>(two_matrices(tile.size + 8, 48, tile.size - 3, 2, dtype::f32, dtype::f32), here(), record);
  }
}
TEST(vulkan_matmul, products_of_few_tiles_get_small_ones) {
  vulkan::device_limits large;
  large.multiprocessors = 132;
  const auto size = [&](std::int64_t M, std::int64_t N, std::int64_t K) {
    const auto c = choose_kernel(vulkan::matmul_tile::all, vulkan::matmul_problem{M, N, K, 1, &large});
    return std::pair(c.variant->size, c.cost.parts > 1);
  };
  EXPECT_EQ(size(768, 128, 128), std::pair(32u, false));
  EXPECT_EQ(size(16384, 1536, 384), std::pair(128u, false));
  EXPECT_EQ(size(384, 384, 16384), std::pair(128u, true));
}
TEST(vulkan_matmul, gemv) {
  for (const std::int64_t M : {1, 2, 3, 5, 8})
    for (int order = 0; order < 4; ++order)
      for (const std::int64_t N : {64, 37}) {
        const auto p = two_matrices(M, N + 100, N, order, M == 2 ? dtype::bf16 : dtype::f32, dtype::f32);
        const auto r = run<portable>(p, here());
        const bool along_k =
            order == 2 || (order == 3 && M == 1);  // lines of both operands: K is 164 or 137, of f32 or, with 2 rows, of bf16
        EXPECT_TRUE(ran(r, along_k && N == 64 && M == 1 ? "matmul_rows" : "matmul_skinny")) << described(p, order);
        EXPECT_TRUE(right(p, r.y)) << described(p, order);
      }
}
TEST(vulkan_matmul, few_rows_have_the_bits_that_each_has_alone) {
  for (const dtype t : {dtype::f32, dtype::bf16, dtype::f16})
    for (const std::int64_t N : {9, 2050}) {  // from 2048 on, subgroups have more columns
      if (t == dtype::f16 && N != 9) continue;
      constexpr std::int64_t M = 2, K = 136;
      const auto p = two_matrices(M, K, N, 2, t, t);
      const auto all = run<portable>(p, here());
      EXPECT_TRUE(ran(all, "matmul_rows"));
      EXPECT_TRUE(right(p, all.y)) << described(p, 2);
      if (t != dtype::f16) compare_fused<portable>(p, here());
      for (const std::int64_t m : {0, 1}) {
        auto one = p;
        one.a = host({1, K}, t, std::vector<double>(p.a.at.begin() + m * K, p.a.at.begin() + (m + 1) * K));
        const auto y = run<portable>(one, here()).y;
        EXPECT_TRUE(std::equal(y.at.begin(), y.at.end(), all.y.at.begin() + m * N)) << described(one, 2) << " row " << m;
      }
    }
}
TEST(vulkan_matmul, parts_of_k_add_up) {
  for (const std::uint32_t parts : {1u, 2u, 3u})
    for (int order = 0; order < 4; ++order)
      for (const std::int64_t more : {0, 5}) {
        vulkan::device_limits f = here();
        f.switches.split_k = parts;
        matrix_product p = two_matrices(64 + more, 800 + more, 64 + more, order, dtype::f32, dtype::f32);
        p.into = op_test::random(p.dims(), dtype::f32, 5);
        p.alpha = 0.5;
        const auto r = run<portable>(p, f);
        EXPECT_EQ(ran(r, "matmul_reduce"), parts > 1);
        EXPECT_TRUE(right(p, r.y)) << described(p, order) << " in " << parts;
      }
}
TEST(vulkan_matmul, batches_of_every_kind) {
  for (const auto& [a, b] : batch_axes)
    for (const std::int64_t M : {2, 10})
      for (const bool with_c : {false, true}) {
        const auto p = batched(a, b, M, dtype::f32, with_c);
        EXPECT_TRUE(right(p, run<portable>(p, here()).y)) << described(p);
      }
}
TEST(vulkan_matmul, an_epilogue_gives_the_bits_of_separate_ops) {
  for (const std::int64_t M : {3, 20})
    for (const std::int64_t N : {64, 37}) {
      vulkan::device_limits f = here();
      f.switches.split_k = N == 37 ? 2 : 1;  // matmuls of few rows never split K
      matrix_product p = two_matrices(M, 512, N, 2, dtype::bf16, dtype::bf16);
      p.alpha = 0.3;
      compare_fused<portable>(p, f);
    }
}
TEST(vulkan_matmul, sums_that_cancel_at_widths_of_models) {
  for (const std::int64_t N : {768, 769, 1024, 3072, 50257})
    for (const std::int64_t M : {3, 12})
      for (const dtype t : {dtype::f32, dtype::bf16}) {
        const auto p = alternating(M, 8, N, 2, t);
        EXPECT_TRUE(right(p, run<portable>(p, here()).y)) << described(p, 2);
      }
}
TEST(vulkan_matmul, long_sums_that_cancel) {
  for (const std::int64_t K : {768, 769, 1024, 3072, 50257}) {
    const auto p = alternating(10, K, 12, 2, dtype::f32);
    EXPECT_TRUE(right(p, run<portable>(p, here()).y)) << described(p, 2);
  }
}

// If K is split, no part is empty, and all parts fit into the scratch memory that the plan has reserved.
TEST(vulkan_matmul, parts_fit_their_scratch) {
  for (const std::int64_t elements : {64, 4096, 768 * 768, 2304 * 768, 1 << 22, 1 << 25})
    for (const std::int64_t K : {0, 1, 255, 512, 768, 4097, 50257, 32768})
      for (const std::int64_t slab : {16, 32, 64})
        for (const std::int64_t wanted : {0, 1, 3, 100}) {
          const auto c = matmul_split::choose((elements + 16383) / 16384, 16384, elements, K, slab, {264, 69, 1}, wanted);
          EXPECT_GE(c.parts * c.depth, K);
          EXPECT_TRUE(c.parts == 1 || (c.parts - 1) * c.depth < K);
          EXPECT_EQ(c.depth % slab, 0);
          const shape in[] = {{elements, K}}, out[] = {{elements, 1}};
          EXPECT_LE(c.parts == 1 ? 0 : 4 * elements * c.parts, matmul_split::scratch({in, out, nullptr}));
        }
}

}  // namespace matmul_test
