/// Which products the kernel for small matmuls takes, and what it launches. Its arithmetic is checked by the tests of the op.
#include <isotope/backend/cuda.hpp>
#include <isotope/isotope.hpp>
#include <isotope/kernels/cuda/native/matmul.hpp>

#include <gtest/gtest.h>

namespace isotope::cuda {
namespace matmul_small_test {

struct no_store final : constant_store, code_store {
  std::uint64_t keep(std::span<const std::byte>) override { return 0; }
  const device_code* keep(std::string_view, std::string) override { return nullptr; }
};

/// A product of bf16, y (M, N) = a (M, K) b (K, N), with addresses that no memory has.
struct product {
  std::vector<view> in, out;
  std::vector<micro_op> body;
  attributes attr = op::matmul::constants{.format = dtype::bf16, .operands = 2};
  device_limits limits;
  std::uint8_t accumulate = 0;

  product(std::int64_t M, std::int64_t N, std::int64_t K, bool a_cross = false, bool b_cross = true) {
    limits.multiprocessors = 132;
    limits.shared_bytes = 99 << 10;
    limits.shared_per_multiprocessor = 228 << 10;
    in = {matrix(M, K, a_cross), matrix(K, N, !b_cross)};
    out = {matrix(M, N, false)};
  }
  view matrix(std::int64_t rows, std::int64_t columns, bool transposed, dtype type = dtype::bf16) {
    view v{at_, rows * columns * size_of(type), {rows, columns}, {}, type};
    v.strides[0] = transposed ? 1 : columns;
    v.strides[1] = transposed ? rows : 1;
    at_ += std::uint64_t(1) << 32;
    return v;
  }
  void make_result_f32() {
    out[0].type = dtype::f32;
    attr = op::matmul::constants{.format = dtype::f32, .operands = 2};
  }
  std::string obstacle() const {
    const launch l = given();
    return std::string(matmul_small(matmul_job(l)).obstacle());
  }
  /// What the native kernel records, small or not.
  std::vector<dispatch> recorded() const {
    no_store store;
    recording r(store, store);
    kernel<op::matmul, precision::bf16, kernels::native>::record(given(), r);
    return r.dispatches;
  }

 private:
  std::uint64_t at_ = std::uint64_t(1) << 40;
  launch given() const {
    launch l;
    l.in = in;
    l.out = out;
    l.attr = &attr;
    l.body = body;
    l.accumulate = accumulate;
    l.device = &limits;
    return l;
  }
};

class MatmulSmall : public testing::Test {
 protected:
  void SetUp() override {
    if (!fatbins::matmul_small.there()) GTEST_SKIP() << "this build has no code for tensor cores";
  }
};

TEST_F(MatmulSmall, TakesTheProductsOfASmallModelInOneLaunchEach) {
  for (const bool a_cross : {false, true})
    for (const bool b_cross : {false, true}) {
      const product p(768, 384, 128, a_cross, b_cross);
      const auto all = p.recorded();
      ASSERT_EQ(all.size(), 1u);
      EXPECT_EQ(all[0].function, std::string("matmul_small_") + (a_cross ? 't' : 'n') + (b_cross ? 'n' : 't'));
      EXPECT_EQ(all[0].count.x, 24u);
      EXPECT_EQ(all[0].count.y, 12u);
      EXPECT_EQ(all[0].matrices, "bf16");
    }
  product gradient(128, 512, 768, true, true);
  gradient.make_result_f32();
  EXPECT_EQ(gradient.obstacle(), "");
  gradient.accumulate = 1;
  EXPECT_EQ(gradient.obstacle(), "");
}
TEST_F(MatmulSmall, RequestsAsManySlabsAsThereAreAndFit) {
  EXPECT_EQ(product(64, 64, 128).recorded()[0].count.shared_bytes, 4 * 32 * 40 * 4);  // the shares of the sums
  EXPECT_EQ(product(64, 64, 512).recorded()[0].count.shared_bytes, 4 * 16 << 10);
  EXPECT_EQ(product(64, 64, 2048).recorded()[0].count.shared_bytes, 6 * 16 << 10);
}
TEST_F(MatmulSmall, LeavesOtherMatmulsToOtherKernels) {
  const auto refused = [](auto change) {
    product p(768, 128, 128);
    change(p);
    return !p.obstacle().empty();
  };
  EXPECT_FALSE(refused([](product&) {}));
  EXPECT_TRUE(refused([](product& p) { p.limits.compute = 75; }));
  EXPECT_TRUE(refused([](product& p) { p.limits.switches.no_matrix_units = true; }));
  EXPECT_TRUE(refused([](product& p) { p.limits.switches.large_kernels = true; }));
  EXPECT_TRUE(refused([](product& p) { p.limits.shared_bytes = 48 << 10; }));
  EXPECT_TRUE(refused([](product& p) { p.in[0].type = dtype::f32; }));
  EXPECT_TRUE(refused([](product& p) { p.out[0].at += 2; }));
  EXPECT_TRUE(refused([](product& p) { p.body = {{&info<op::silu>, {gemm_result, -1, -1}, 0, dtype::bf16}}; }));
  EXPECT_NE(product(64, 64, 16384).obstacle(), "");
  EXPECT_NE(product(64, 63, 64).obstacle(), "");  // rows of the result are not aligned
}

TEST_F(MatmulSmall, TakesProductsWhoseBlocksAllRunAtOnce) {
  EXPECT_EQ(product(1024, 512, 128).obstacle(), "");  // 512 blocks, of which 4 run on each of 132 multiprocessors
  EXPECT_NE(product(1024, 576, 128).obstacle(), "");
  EXPECT_EQ(product(1024, 256, 768).obstacle(), "");  // 256 blocks, 2 on each because of their shared memory
  EXPECT_NE(product(1024, 288, 768).obstacle(), "");
}

TEST_F(MatmulSmall, LeavesProductsInOneOrderToKernelsThatAddUpOneTermAfterTheOther) {
  const auto recorded = [](std::int64_t M, std::int64_t N, std::int64_t K) {
    product p(M, N, K);
    p.attr = op::matmul::constants{.format = dtype::bf16, .operands = 2, .batch_invariant = true};
    const auto all = p.recorded();
    return all.size() == 1 ? all[0] : dispatch{};  // the parts of K of a divided product are added by another launch
  };
  const dispatch few = recorded(16, 384, 384), more = recorded(17, 384, 512);
  EXPECT_EQ(few.function, "matmul_serial_16_nn");
  EXPECT_EQ(few.count.x, 1u);
  EXPECT_EQ(few.count.y, 12u);
  EXPECT_EQ(few.count.shared_bytes, 6 * (16 + 32) * 128);
  EXPECT_EQ(more.function, "matmul_serial_32_nn");
  EXPECT_EQ(recorded(1, 384, 384).function, "matmul_serial_16_nn");
  EXPECT_TRUE(std::string_view(recorded(16, 384, 4096).function).starts_with("matmul_mma_"));  // K does not fit shared memory at once
  EXPECT_TRUE(std::string_view(recorded(2048, 1536, 384).function).starts_with("matmul_mma_"));
}

}  // namespace matmul_small_test
}  // namespace isotope::cuda
