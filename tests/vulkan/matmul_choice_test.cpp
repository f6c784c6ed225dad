/// The tiles and splits of K that are chosen for the matmuls of a GPT-2 124M step (32768 tokens) on an H200 must be the fastest that
/// bench_vulkan_matmul --sweep measured there, or within 2 % of it. Nothing runs on a device.
#include <isotope/kernels/vulkan/native/matmul.hpp>

#include <gtest/gtest.h>

#include <string>

using namespace isotope;
using native = vulkan::kernel<op::matmul, precision::f32, kernels::native>;

namespace matmul_choice_test {

vulkan::device_limits h200() {
  vulkan::device_limits f;
  f.shared_bytes = 49152;
  f.multiprocessors = 132;
  f.matrices = {{16, 16, 16, dtype::bf16, dtype::f32}};
  return f;
}
/// The choice for dense operands and a dense result. `order` has one letter per operand: t if the lines of A run across K, or those of B along K.
std::string chosen(std::int64_t M, std::int64_t N, std::int64_t K, std::string_view order, dtype out,
                   const vulkan::device_limits& f = h200()) {
  const auto matrix = [](std::uint64_t at, const shape& s, bool transposed, dtype t) {
    vulkan::view v{at, s.count() * size_of(t), s, dense_strides(s), t};
    if (transposed) v.strides[0] = 1, v.strides[1] = s[0];
    return v;
  };
  const vulkan::view in[] = {matrix(std::uint64_t(1) << 32, {M, K}, order[0] == 't', dtype::bf16),
                             matrix(std::uint64_t(2) << 32, {K, N}, order[1] == 't', dtype::bf16)},
                     y[] = {matrix(std::uint64_t(3) << 32, {M, N}, false, out)};
  const attributes attr = op::matmul::constants{.format = out, .operands = 2};
  vulkan::launch l;
  l.in = in;
  l.out = y;
  l.attr = &attr;
  l.device = &f;
  const auto c = native::best(vulkan::matmul_job(l));
  if (c.variant == nullptr) return "none";
  fixed_string<64> t;
  t << std::int64_t(c.variant->m) << "x" << std::int64_t(c.variant->n) << "x" << std::int64_t(c.variant->slab) << ":"
    << std::int64_t(c.variant->teams_m) << "x" << std::int64_t(c.variant->teams_n) << " in " << c.cost.parts;
  return std::string(t.view());
}
constexpr auto bf16 = dtype::bf16, f32 = dtype::f32;

TEST(vulkan_matmul_choice, of_products_with_weights) {
  EXPECT_EQ(chosen(32768, 3072, 768, "nt", bf16), "128x192x64:2x4 in 1");
  EXPECT_EQ(chosen(32768, 2304, 768, "nt", bf16), "128x192x64:2x4 in 1");
  EXPECT_EQ(chosen(32768, 768, 768, "nt", bf16), "128x192x64:2x4 in 1");
  EXPECT_EQ(chosen(32768, 768, 3072, "nt", bf16), "128x192x64:2x4 in 1");
  EXPECT_EQ(chosen(8192, 8192, 8192, "nt", bf16), "128x128x64:4x2 in 1");
  EXPECT_EQ(chosen(32768, 50304, 768, "nt", bf16), "128x192x64:2x4 in 1");
  EXPECT_EQ(chosen(32768, 50257, 768, "nt", bf16), "192x128x64:4x2 in 1");
}
TEST(vulkan_matmul_choice, of_derivatives_by_activations) {
  EXPECT_EQ(chosen(32768, 768, 2304, "nn", bf16), "192x128x64:4x2 in 1");
  EXPECT_EQ(chosen(32768, 768, 768, "nn", bf16), "192x128x64:4x2 in 1");
  EXPECT_EQ(chosen(32768, 768, 3072, "nn", bf16), "192x128x64:4x2 in 1");
  EXPECT_EQ(chosen(32768, 3072, 768, "nn", bf16), "192x128x64:4x2 in 1");
  EXPECT_EQ(chosen(32768, 768, 50257, "nn", bf16), "192x128x64:4x2 in 1");
  EXPECT_EQ(chosen(32768, 768, 50304, "nn", bf16), "192x128x64:4x2 in 1");
}
TEST(vulkan_matmul_choice, of_derivatives_by_weights) {
  EXPECT_EQ(chosen(2304, 768, 32768, "tn", f32), "128x128x64:4x2 in 6");
  EXPECT_EQ(chosen(768, 768, 32768, "tn", f32), "128x128x64:4x2 in 11");
  EXPECT_EQ(chosen(3072, 768, 32768, "tn", f32), "128x128x64:4x2 in 7");
  EXPECT_EQ(chosen(768, 3072, 32768, "tn", f32), "128x128x64:4x2 in 7");
  EXPECT_EQ(chosen(50304, 768, 32768, "tn", f32), "128x128x64:4x2 in 1");
  EXPECT_EQ(chosen(50257, 768, 32768, "tn", f32), "128x128x64:2x4 in 1");
}
TEST(vulkan_matmul_choice, on_devices_that_the_fastest_tile_does_not_fit) {
  vulkan::device_limits f = h200();
  f.shared_bytes = 40960;
  EXPECT_EQ(chosen(32768, 3072, 768, "nt", bf16, f), "128x128x64:4x2 in 1");
  f.shared_bytes = 32768;
  EXPECT_EQ(chosen(32768, 3072, 768, "nt", bf16, f), "128x128x32:2x2 in 1");
  f.shared_bytes = 16384;
  EXPECT_EQ(chosen(32768, 3072, 768, "nt", bf16, f), "64x64x32:2x2 in 1");
  f.shared_bytes = 8192;
  EXPECT_EQ(chosen(32768, 3072, 768, "nt", bf16, f), "none");
  f = h200();
  f.invocations = 128;
  EXPECT_EQ(chosen(32768, 3072, 768, "nt", bf16, f), "128x128x32:2x2 in 1");
}

}  // namespace matmul_choice_test
