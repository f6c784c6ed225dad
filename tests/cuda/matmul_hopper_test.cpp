/// Which products and epilogues the matmul for Hopper takes, and what it launches. No device is needed: its arithmetic is checked where there is one.
#include "device.hpp"

#include <isotope/backend/cuda.hpp>
#include <isotope/isotope.hpp>
#include <isotope/kernels/cuda/native/matmul.hpp>
#include <isotope/plan/dynamic.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace isotope::cuda {
namespace matmul_hopper_test {

struct no_store final : constant_store, code_store {
  std::uint64_t keep(std::span<const std::byte>) override { return 0; }
  const device_code* keep(std::string_view, std::string) override { return nullptr; }
};

/// A product of bf16, y (M, N) = a (M, K) w (N, K) transposed, with addresses that no memory has.
struct product {
  static constexpr std::int64_t M = 4096, N = 768, K = 3072;
  std::vector<view> in, out;
  std::vector<micro_op> body;
  attributes attr = op::matmul::constants{.format = dtype::bf16, .operands = 2};
  device_limits limits;
  std::uint8_t accumulate = 0;
  std::int64_t scratch = 0;
  std::vector<view> sums;  // where column sums go, if any are asked for

  product() {
    limits.compute = 90;
    limits.multiprocessors = 132;
    limits.shared_bytes = 232448;
    in = {matrix(M, K, {K, 1}), matrix(K, N, {1, K})};
    out = {matrix(M, N, {N, 1})};
  }
  view matrix(std::int64_t rows, std::int64_t columns, std::array<std::int64_t, 2> strides, dtype type = dtype::bf16) {
    view v{at_, rows * columns * size_of(type), {rows, columns}, {}, type};
    v.strides[0] = strides[0];
    v.strides[1] = strides[1];
    at_ += std::uint64_t(1) << 32;
    return v;
  }
  void add_bias() {
    in.push_back(matrix(M, N, {0, 1}));
    body.push_back({&info<op::add>, {gemm_result, std::int8_t(in.size() - 1), -1}, 0, dtype::bf16});
  }
  std::string obstacle() const {
    const launch l = given();
    const matmul_shape s(l);
    return std::string(matmul_hopper(l, s).obstacle());
  }
  std::vector<dispatch> recorded() const {
    no_store store;
    recording r(store, store);
    const launch l = given();
    const matmul_shape s(l);
    matmul_hopper(l, s).record(r);
    return r.dispatches;
  }
  /// What the native kernel of matmul records.
  std::vector<dispatch> recorded_by_kernel() const {
    no_store store;
    recording r(store, store);
    kernel<op::matmul, precision::bf16, kernels::native>::record(given(), r);
    return r.dispatches;
  }
  /// Whether that kernel gives the column sums of its result, and the scratch that it needs for them.
  bool sums_columns() const {
    const std::array<shape, 2> sizes{in[0].dims, in[1].dims};
    const shape y = out[0].dims;
    return kernel<op::matmul, precision::bf16, kernels::native>::column_sums({sizes, {&y, 1}, &attr}, body, 0);
  }
  std::int64_t scratch_for_sums() const {
    const std::array<shape, 2> sizes{in[0].dims, in[1].dims}, results{out[0].dims, sums[0].dims};
    return kernel<op::matmul, precision::bf16, kernels::native>::scratch({sizes, results, &attr, 0});
  }
  void multiply_by_gelu_grad() {
    in.push_back(matrix(out[0].dims[0], out[0].dims[1], {out[0].dims[1], 1}));
    body = {{&info<op::gelu_tanh_grad>, {2, gemm_result, -1}, 0, dtype::bf16}};
  }
  gpu::hopper_epilogue epilogue() const {
    gpu::matmul_hopper g;
    std::memcpy(&g, recorded().at(0).arguments.data(), sizeof g);
    return g.epilogue;
  }

 protected:
  launch given() const {
    launch l;
    l.in = in;
    l.out = out;
    l.attr = &attr;
    l.body = body;
    l.accumulate = accumulate;
    l.scratch = std::uint64_t(1) << 50;
    l.scratch_bytes = scratch;
    l.device = &limits;
    if (!sums.empty()) {
      l.summed = 0;
      l.column_sums = &sums[0];
    }
    return l;
  }

 private:
  std::uint64_t at_ = std::uint64_t(1) << 40;
};

class MatmulHopper : public testing::Test {
 protected:
  void SetUp() override {
    if (!fatbins::matmul_hopper.there()) GTEST_SKIP() << "this build has no code for Hopper";
  }
};

TEST_F(MatmulHopper, DescribesItsOperandsInTheirMemoryOrder) {
  product p;
  const auto d = p.recorded();
  ASSERT_EQ(d.size(), 1u);
  EXPECT_TRUE(d[0].function.starts_with("matmul_hopper_nt_"));
  ASSERT_EQ(d[0].maps.size(), 2u);
  EXPECT_EQ(d[0].maps[0].dims[0], std::uint64_t(p.K));
  EXPECT_EQ(d[0].maps[0].dims[1], std::uint64_t(p.M));
  EXPECT_EQ(d[0].maps[0].strides_bytes[0], std::uint64_t(2 * p.K));
  EXPECT_EQ(d[0].maps[1].dims[1], std::uint64_t(p.N));
  p.in[1] = p.matrix(p.K, p.N, {p.N, 1});
  EXPECT_TRUE(p.recorded()[0].function.starts_with("matmul_hopper_nn_"));
  p.in[0] = p.matrix(p.M, p.K, {1, p.M});
  EXPECT_TRUE(p.recorded()[0].function.starts_with("matmul_hopper_tn_"));
  p.in[1] = p.matrix(p.K, p.N, {1, p.K});
  EXPECT_NE(p.obstacle(), "");
}

TEST_F(MatmulHopper, TakesTheBodiesOfTransformers) {
  product p;
  EXPECT_EQ(p.epilogue(), gpu::hopper_epilogue::plain);
  p.accumulate = 1;
  EXPECT_EQ(p.epilogue(), gpu::hopper_epilogue::add);
  p.accumulate = 0;
  p.add_bias();
  EXPECT_EQ(p.epilogue(), gpu::hopper_epilogue::bias);
  p.out.push_back(p.matrix(p.M, p.N, {p.N, 1}));
  p.body.push_back({&info<op::gelu_tanh>, {max_inputs, -1, -1}, 1, dtype::bf16});
  EXPECT_EQ(p.epilogue(), gpu::hopper_epilogue::bias_gelu);
  EXPECT_EQ(p.recorded()[0].writes.size(), 2u);
  p.body.back().op = &info<op::gelu_erf>;
  EXPECT_EQ(p.epilogue(), gpu::hopper_epilogue::bias_gelu_erf);

  product residual;
  residual.add_bias();
  residual.body[0].store = -1;
  residual.in.push_back(residual.matrix(p.M, p.N, {p.N, 1}));
  residual.body.push_back({&info<op::add>, {3, max_inputs, -1}, 0, dtype::bf16});
  EXPECT_EQ(residual.epilogue(), gpu::hopper_epilogue::bias_residual);
  EXPECT_EQ(residual.recorded()[0].reads.size(), 4u);

  product grad;
  grad.multiply_by_gelu_grad();
  EXPECT_EQ(grad.epilogue(), gpu::hopper_epilogue::gelu_grad);
  grad.body = {{&info<op::gelu_tanh_grad>, {gemm_result, 2, -1}, 0, dtype::bf16}};
  EXPECT_NE(grad.obstacle(), "");
}

TEST_F(MatmulHopper, LeavesOtherMatmulsToOtherKernels) {
  const auto refused = [](auto change) {
    product p;
    change(p);
    return !p.obstacle().empty();
  };
  EXPECT_FALSE(refused([](product&) {}));
  EXPECT_TRUE(refused([](product& p) { p.limits.compute = 80; }));
  EXPECT_TRUE(refused([](product& p) { p.limits.switches.no_matrix_units = true; }));
  EXPECT_TRUE(refused([](product& p) { p.in[0].at += 2; }));
  EXPECT_TRUE(refused([](product& p) { p.in[0].strides[0] += 1; }));
  EXPECT_TRUE(refused([](product& p) { p.in[0].type = dtype::f16; }));
  EXPECT_TRUE(refused([](product& p) {
    p.add_bias();
    p.body[0].type = dtype::f32;
  }));
}

TEST_F(MatmulHopper, DividesALongSumOnlyWhereItHasScratch) {
  product p;
  p.in = {p.matrix(768, 32768, {1, 768}), p.matrix(32768, 768, {768, 1})};
  p.out = {p.matrix(768, 768, {768, 1}, dtype::f32)};
  p.attr = op::matmul::constants{.format = dtype::f32, .operands = 2};
  EXPECT_EQ(p.recorded().size(), 1u);
  p.scratch = 64 << 20;
  const auto d = p.recorded();
  ASSERT_EQ(d.size(), 2u);
  EXPECT_TRUE(d[0].function.starts_with("matmul_hopper_direct_tn_"));
  EXPECT_TRUE(d[0].writes.back().overlaps(d[1].reads.front()));
  EXPECT_LE(d[1].reads.front().bytes(), p.scratch);
}

TEST_F(MatmulHopper, SumsColumnsOfProductsTimesTheGradientOfGelu) {
  product p;
  p.in = {p.matrix(5000, 384, {384, 1}), p.matrix(384, 1536, {1, 384})};
  p.out = {p.matrix(5000, 1536, {1536, 1})};
  EXPECT_FALSE(p.sums_columns());
  p.multiply_by_gelu_grad();
  EXPECT_TRUE(p.sums_columns());
  EXPECT_EQ(p.recorded_by_kernel().size(), 1u);
  p.sums = {p.matrix(1, 1536, {1536, 1}, dtype::f32)};
  p.scratch = p.scratch_for_sums();
  EXPECT_GE(p.scratch, 40 * 1536 * 4);  // a row of sums for each tile of 128 rows
  const auto d = p.recorded_by_kernel();
  ASSERT_EQ(d.size(), 2u);
  EXPECT_EQ(d[0].function, "matmul_hopper_nt_128");
  EXPECT_TRUE(d[0].writes.back().overlaps(d[1].reads.front()));
  EXPECT_EQ(d[1].function, "column_sum_f32");
  EXPECT_TRUE(d[1].writes.front().overlaps(p.sums[0]));
  p.limits.compute = 80;
  const auto elsewhere = p.recorded_by_kernel();
  EXPECT_EQ(elsewhere.back().function, "column_sum_bf16");
  EXPECT_TRUE(elsewhere.back().reads.front().overlaps(p.out[0]));
}

TEST_F(MatmulHopper, LeavesColumnSumsWithoutScratchToAKernelThatReadsTheResult) {
  product p;
  p.multiply_by_gelu_grad();
  p.sums = {p.matrix(1, p.N, {p.N, 1}, dtype::f32)};
  const auto d = p.recorded_by_kernel();
  ASSERT_EQ(d.size(), 2u);
  EXPECT_TRUE(d[0].function.starts_with("matmul_hopper_nt_"));
  EXPECT_EQ(d[1].function, "column_sum_bf16");
}

using on_gpu = target<backend::cuda, precision::bf16, kernels::native>;
constexpr std::int64_t R = 4136, C = 520, K = 72;  // the last tiles have 40 rows and 8 columns

/// The sums of columns of (dy w) gelu'(x).
struct summed_gradient {
  template <Machine M> constexpr tensor<M> operator()(scope<M> s) const {
    const auto dy = matmul(s.input("dy", {R, K}), s.input("w", {K, C}));                                              // (R,C)
    const auto dx = apply<op::gelu_tanh_grad>(place::current(), {}, s.input("x", {R, C}), dy);                        // (R,C)
    return apply<op::sum>(place::current(), op::sum::constants{.axes = 1, .format = format_number(dtype::f32)}, dx);  // (C)
  }
};

TEST_F(MatmulHopper, GivesTheColumnSumsOfWhatItStores) {
  const auto planned = plan_inference<on_gpu>(summed_gradient{});
  ASSERT_TRUE(planned.ok()) << planned.error().line();
  ASSERT_EQ(plan_view(*planned).steps.size(), 1u);
  EXPECT_EQ(plan_view(*planned).steps[0].summed, 0);
  const cuda_test::hopper_devices devices;
  if (const auto why = devices.missing(); !why.empty()) GTEST_SKIP() << why;
  const auto d = device<on_gpu>::open(cuda_test::test_options());
  ASSERT_TRUE(d.ok()) << d.error().line();
  auto s = d->load(*planned);
  ASSERT_TRUE(s.ok()) << s.error().line();
  std::uint32_t state = 1;
  for (const char* name : {"dy", "w", "x"}) {
    const auto x = s->input<bfloat16>(name);
    ASSERT_TRUE(x.ok());
    for (bfloat16& e : *x) {
      state = state * 1664525u + 1013904223u;
      e = bfloat16(float(state >> 8) / float(1 << 22) - 2.0f);
    }
  }
  std::vector<float> sums, before;
  const auto check = [&](std::size_t k) {
    const step& at = s->plan().steps[k];
    const operand* results = &s->plan().operands[std::size_t(at.operands + at.inputs)];
    const auto dx = s->numbers(results[0]), of_columns = s->numbers(results[1]);
    ASSERT_TRUE(dx.ok() && of_columns.ok());
    sums = *of_columns;
    for (std::int64_t c = 0; c < C; ++c) {
      double sum = 0, sizes = 0;
      for (std::int64_t r = 0; r < R; ++r) sum += (*dx)[std::size_t(r * C + c)], sizes += std::fabs((*dx)[std::size_t(r * C + c)]);
      // A term takes part in at most 10 additions of a lane, 7 in a tile and 33 of tiles.
      EXPECT_LE(std::fabs(sums[std::size_t(c)] - sum), 50 * std::ldexp(sizes, -24)) << "column " << c;
    }
  };
  for (int run = 0; run < 2; ++run) {
    before = std::exchange(sums, {});
    s->observe({}, check, phase_always);
    ASSERT_TRUE(s->status().ok()) << s->status().error().line();
    ASSERT_EQ(sums.size(), std::size_t(C));
  }
  EXPECT_EQ(before, sums);
}

/// The same product of f32, with scratch for the planes.
struct product_of_f32 : product {
  product_of_f32() {
    for (view* v : {&in[0], &in[1], &out[0]}) v->type = dtype::f32, v->bytes *= 2;
    attr = op::matmul::constants{.format = dtype::f32, .operands = 2};
    scratch = 6 * N * K;  // no room for partial sums
  }
  void gradient_of_weights() {
    scratch = 64 << 20;
    in = {matrix(384, 16384, {1, 384}, dtype::f32), matrix(16384, 384, {384, 1}, dtype::f32)};
    out = {matrix(384, 384, {384, 1}, dtype::f32)};
  }
  std::string obstacle() const {
    const launch l = given();
    return std::string(matmul_f32_hopper(matmul_job(l)).obstacle());
  }
  std::vector<dispatch> recorded() const {
    no_store store;
    recording r(store, store);
    kernel<op::matmul, precision::f32, kernels::native>::record(given(), r);
    return r.dispatches;
  }
};
class MatmulF32Hopper : public testing::Test {
 protected:
  void SetUp() override {
    if (!fatbins::matmul_f32_hopper.there()) GTEST_SKIP() << "this build has no code for Hopper";
  }
};

TEST_F(MatmulF32Hopper, SplitsTheRightOperandAndDescribesItsPlanes) {
  product_of_f32 p;
  for (const bool across : {false, true}) {
    if (across) p.in[1] = p.matrix(p.K, p.N, {p.N, 1}, dtype::f32);
    const std::int64_t lines = across ? p.K : p.N, length = across ? p.N : p.K;
    const auto d = p.recorded();
    ASSERT_EQ(d.size(), 2u);
    EXPECT_EQ(d[0].function, "matmul_f32_planes");
    EXPECT_EQ(d[1].function, across ? "matmul_f32_hopper_nn" : "matmul_f32_hopper_nt");
    EXPECT_EQ(d[0].writes.at(0).bytes(), 6 * lines * length);
    EXPECT_TRUE(std::any_of(d[1].reads.begin(), d[1].reads.end(), [&](const range& r) { return r.overlaps(d[0].writes[0]); }));
    ASSERT_EQ(d[1].maps.size(), 4u);
    EXPECT_EQ(d[1].maps[0].dims[0], std::uint64_t(2 * p.K));
    EXPECT_EQ(d[1].maps[0].strides_bytes[0], std::uint64_t(4 * p.K));
    for (std::size_t k = 1; k < 4; ++k) {
      EXPECT_EQ(d[1].maps[k].address, d[0].writes[0].first + (k - 1) * std::uint64_t(2 * lines * length));
      EXPECT_EQ(d[1].maps[k].dims[1], std::uint64_t(lines));
    }
  }
}
TEST_F(MatmulF32Hopper, SplitsTheSmallerOperandUnlessABodyFollows) {
  product_of_f32 p;
  p.in = {p.matrix(384, 4096, {1, 384}, dtype::f32), p.matrix(4096, 1536, {1536, 1}, dtype::f32)};
  p.out = {p.matrix(384, 1536, {1536, 1}, dtype::f32)};
  p.scratch = 64 << 20;
  const auto d = p.recorded();
  EXPECT_EQ(d.at(0).reads.at(0).first, p.in[0].at);
  gpu::matmul_f32_hopper g;
  std::memcpy(&g, d.at(1).arguments.data(), sizeof g);
  EXPECT_EQ(std::tuple(g.M, g.N, g.g.a.at, g.g.b.at, g.g.swapped), std::tuple(1536, 384, p.in[1].at, p.in[0].at, 1));
  p.in.push_back(p.matrix(384, 1536, {1536, 1}, dtype::f32));
  p.body = {{&info<op::add>, {gemm_result, 2, -1}, 0, dtype::f32}};
  EXPECT_EQ(p.recorded().at(0).reads.at(0).first, p.in[1].at);
}
TEST_F(MatmulF32Hopper, DividesALongSumBehindThePlanes) {
  product_of_f32 p;
  p.gradient_of_weights();
  const auto d = p.recorded();
  ASSERT_EQ(d.size(), 3u);
  EXPECT_EQ(d[1].function, "matmul_f32_hopper_tn");
  EXPECT_EQ(d[2].function, "matmul_reduce");
  EXPECT_FALSE(d[1].writes.at(0).overlaps(d[0].writes.at(0)));
  EXPECT_TRUE(d[1].writes[0].overlaps(d[2].reads.at(0)));
  EXPECT_LE(d[0].writes[0].bytes() + d[1].writes[0].bytes(), p.scratch);
}
TEST_F(MatmulF32Hopper, HasScratchForEveryProductThatItTakes) {
  product_of_f32 p;
  for (const bool gradient : {false, true}) {
    if (gradient) p.gradient_of_weights();
    const std::array<shape, 2> in{p.in[0].dims, p.in[1].dims};
    const std::array<shape, 1> out{p.out[0].dims};
    p.scratch = kernel<op::matmul, precision::f32, kernels::native>::scratch({in, out, &p.attr});
    EXPECT_EQ(p.obstacle(), "");
  }
}
TEST_F(MatmulF32Hopper, LeavesOtherMatmulsToOtherKernels) {
  const auto refused = [](auto change) {
    product_of_f32 p;
    change(p);
    return !p.obstacle().empty();
  };
  EXPECT_FALSE(refused([](auto&) {}));
  EXPECT_TRUE(refused([](auto& p) { p.limits.compute = 80; }));
  EXPECT_TRUE(refused([](auto& p) { p.limits.switches.no_matrix_units = true; }));
  EXPECT_TRUE(refused([](auto& p) { p.in[0].at += 4; }));
  EXPECT_TRUE(refused([](auto& p) { p.in[1].strides[1] += 1; }));
  EXPECT_TRUE(refused([](auto& p) { p.in[0].type = dtype::bf16; }));
  EXPECT_TRUE(refused([](auto& p) { p.scratch = 1 << 20; }));
  EXPECT_TRUE(refused([](auto& p) {
    p.in = {p.matrix(128, 128, {128, 1}, dtype::f32), p.matrix(128, 128, {128, 1}, dtype::f32)};
    p.out = {p.matrix(128, 128, {128, 1}, dtype::f32)};
  }));
}

}  // namespace matmul_hopper_test
}  // namespace isotope::cuda
