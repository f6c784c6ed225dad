/// Tensors of more than 2^31 elements in an arena beyond 4 GiB: matmuls, a row kernel, an element-wise step, a copy and a reduction. The launches are checked
/// anywhere; the values, at the ends of every tensor and where 31 and 32 bits overflow, on a device with enough memory.
#include "device.hpp"

#include <isotope/backend/cuda.hpp>
#include <isotope/isotope.hpp>
#include <isotope/plan/dynamic.hpp>

#include <cmath>
#include <deque>
#include <set>
#include <string>
#include <vector>

namespace isotope::cuda {
namespace large_tensors_test {

using bf16 = target<backend::cuda, precision::bf16, kernels::native>;
constexpr std::int64_t R = (1 << 21) + 24, C = 1024, K = 64;  // R C = 2^31 + 24576 elements of two bytes
constexpr std::int64_t needed_memory = std::int64_t(24) << 30;
static_assert(R * C > std::int64_t(1) << 31);

struct large {
  template <Machine M> constexpr tensor<M> operator()(scope<M> s) const {
    const auto x = s.input("x", {R, K});
    const auto y = matmul(x, s.input("w", {K, C}));  // (R,C)
    const auto z = softmax(y) + y;                   // (R,C)
    const auto t = contiguous(transpose(z));         // (C,R)
    return matmul(t, x) + sum(t, {-1}, true);        // (C,K)
  }
};

/// Row i of x has a single 1, whose place depends on all bits of i. So row i of y is a row of w, which has eighths.
std::int64_t place(std::int64_t i) { return (i ^ (i >> 4) ^ (i >> 9) ^ (i >> 14) ^ (i >> 18)) % K; }
float weight(std::int64_t k, std::int64_t j) { return float((5 * k + 3 * j + k * j) % 29 - 14) / 8; }
/// The exact rows of softmax(y), one for each row of w.
std::vector<double> row_of_softmax(std::int64_t k) {
  std::vector<double> e;
  double all = 0;
  for (std::int64_t j = 0; j < C; ++j) e.push_back(std::exp(double(weight(k, j)))), all += e.back();
  for (double& x : e) x /= all;
  return e;
}

struct kept final : constant_store, code_store {
  std::uint64_t keep(std::span<const std::byte>) override { return 1 << 20; }
  const device_code* keep(std::string_view name, std::string) override {
    return &all.emplace_back(device_code{.name = name, .source = {}, .bytes = {}});
  }
  std::deque<device_code> all;
};

TEST(cuda_large_tensors, have_launches_that_every_device_takes_and_ranges_beyond_32_bits) {
  const auto planned = plan_inference<bf16>(large{});
  ASSERT_TRUE(planned.ok()) << planned.error().line();
  const plan_view p = *planned;
  EXPECT_GT(p.totals.bytes, std::int64_t(8) << 30);
  device_limits ampere, hopper;
  hopper.compute = 90, hopper.multiprocessors = 132, hopper.shared_bytes = 227 << 10;
  for (const device_limits& d : {ampere, hopper}) {
    region_addresses base;
    std::uint64_t next = std::uint64_t(1) << 40;
    for (std::size_t k = 0; k < base.at.size(); ++k) base.at[k] = next, next += std::uint64_t(p.totals.region[k] + 4095) / 4096 * 4096;
    base.scalars = next;
    kept store;
    const auto all = cuda::record(p, {kernel_table<bf16>, code_of<bf16>(), {}}, base, {}, d, phase_always, store, store);
    std::set<std::int32_t> steps;
    std::int64_t most = 0;
    for (const dispatch& x : all) {
      steps.insert(x.step);
      EXPECT_LE(x.count.x, 0x7fffffffu) << x.function;
      EXPECT_LE(std::max(x.count.y, x.count.z), 65535u) << x.function;
      EXPECT_GT(std::uint64_t(x.count.x) * x.count.y * x.count.z, 0u) << x.function;
      for (const auto* ranges : {&x.reads, &x.writes})
        for (const range& r : *ranges) {
          EXPECT_TRUE(r.first >= std::uint64_t(1) << 40 && r.end <= next) << x.function;
          most = std::max(most, r.bytes());
        }
    }
    EXPECT_EQ(steps.size(), p.steps.size());
    EXPECT_EQ(most, 2 * R * C);
  }
}

class checker {
 public:
  explicit checker(session<bf16>& s) : s_(s) {
    for (std::int64_t k = 0; k < K; ++k) rows_.push_back(row_of_softmax(k));
  }
  /// Compares an output that a step has just written.
  void check(std::size_t step) {
    const plan_view& p = s_.plan();
    const isotope::step& at = p.steps[step];
    const operand& y = p.operands[std::size_t(at.operands + at.inputs)];
    const std::string name(at.op->name);
    const bool small = y.dims.count() < R * C;
    // A result is rounded once, so it differs by at most 2^-8 of its size; what is computed from rounded numbers, by twice that. Sums are of f32.
    const auto expected = [&](std::int64_t i, std::int64_t j) -> double {
      const double product = weight(place(i), j), share = rows_[std::size_t(place(i))][std::size_t(j)];
      return name == "matmul" ? product : name == "softmax" ? share : product + share;
    };
    ++steps;
    const std::int64_t half = std::int64_t(1) << 20, whole = std::int64_t(1) << 21;
    if (small) return check_sums(y, name);
    const bool turned = y.dims[0] == C;
    ++large;
    for (const std::int64_t i : {std::int64_t(0), std::int64_t(1), half - 1, half, half + 1, whole - 1, whole, whole + 1, R - 2, R - 1}) {
      if (turned) continue;
      const auto got = piece(y, i * y.strides[0], C);
      for (std::int64_t j = 0; j < C; ++j) compare(got[std::size_t(j)], expected(i, j), name, i, j);
    }
    for (const std::int64_t j : {std::int64_t(0), std::int64_t(1), C / 2 - 1, C / 2, C - 2, C - 1})
      for (const std::int64_t first : {std::int64_t(0), half - 32, whole - 40, R - 64}) {
        if (!turned) continue;
        const auto got = piece(y, j * y.strides[0] + first, 64);
        for (std::int64_t i = 0; i < 64; ++i) compare(got[std::size_t(i)], expected(first + i, j), name, first + i, j);
      }
  }
  int steps = 0, large = 0;
  std::int64_t compared = 0, wrong = 0;
  std::string first_wrong;

 private:
  session<bf16>& s_;
  std::vector<std::vector<double>> rows_;

  std::vector<float> piece(operand o, std::int64_t first, std::int64_t length) {
    o.at += first * size_of(o.type);
    o.dims = shape{length};
    o.strides = {};
    o.strides[0] = 1;
    o.bytes = length * size_of(o.type);
    auto x = s_.numbers(o);
    EXPECT_TRUE(x.ok()) << (x ? std::string() : x.error().line());
    return x ? *x : std::vector<float>(std::size_t(length), std::nanf(""));
  }
  void compare(double got, double want, const std::string& name, std::int64_t i, std::int64_t j, double scale = 0) {
    ++compared;
    const bool right = std::fabs(got - want) <= std::ldexp(std::max(std::fabs(want), scale), -7);
    if (!right && wrong++ == 0)
      first_wrong =
          name + " at " + std::to_string(i) + ", " + std::to_string(j) + ": " + std::to_string(got) + ", expected " + std::to_string(want);
  }
  /// Sums of the columns of z, and for the product with x also those of the rows in which x has a 1 at k. A sum of many equal terms in f32 loses some bits.
  void check_sums(const operand& y, const std::string& name) {
    std::vector<double> uses(std::size_t(K), 0);
    for (std::int64_t i = 0; i < R; ++i) ++uses[std::size_t(place(i))];
    const std::int64_t width = y.dims.count() / C;
    const auto got = piece(y, 0, y.dims.count());
    for (std::int64_t j = 0; j < C; ++j) {
      std::vector<double> parts;
      double sum = 0, sizes = 0;
      for (std::int64_t k = 0; k < K; ++k) {
        parts.push_back(uses[std::size_t(k)] * (weight(k, j) + rows_[std::size_t(k)][std::size_t(j)]));
        sum += parts.back(), sizes += std::fabs(parts.back());
      }
      for (std::int64_t k = 0; k < width; ++k)
        compare(got[std::size_t(j * width + k)], sum + (width == K ? parts[std::size_t(k)] : 0), name, j, k, 4 * sizes);
    }
  }
};

TEST(cuda_large_tensors, have_the_values_of_small_ones_at_their_ends_and_where_32_bits_overflow) {
  constexpr const char* unchecked = "its 6 kernels over 2^31 elements are not checked";
  if (cuda_test::emulated()) GTEST_SKIP() << "there is no GPU: " << unchecked;
  auto& d = cuda_test::test_device();
  if (d.context->free_bytes() < needed_memory)
    GTEST_SKIP() << d.context->physical().name << " has " << (d.context->free_bytes() >> 30) << " of 24 GiB free: " << unchecked;
  auto s = device<bf16>::over(d.context, d.functions).load(*plan_inference<bf16>(large{}));
  ASSERT_TRUE(s.ok()) << s.error().line();
  EXPECT_GT(s->arena().bytes(), std::int64_t(8) << 30);
  const auto x = s->input<bfloat16>("x"), w = s->input<bfloat16>("w");
  ASSERT_TRUE(x.ok() && w.ok());
  for (std::int64_t i = 0; i < R; ++i)
    for (std::int64_t k = 0; k < K; ++k) (*x)[std::size_t(i * K + k)] = bfloat16(k == place(i) ? 1.0f : 0.0f);
  for (std::int64_t k = 0; k < K; ++k)
    for (std::int64_t j = 0; j < C; ++j) (*w)[std::size_t(k * C + j)] = bfloat16(weight(k, j));
  checker c(*s);
  s->observe({}, [&](std::size_t step) { c.check(step); }, phase_always);
  ASSERT_TRUE(s->status().ok()) << s->status().error().line();
  EXPECT_EQ(c.wrong, 0) << c.wrong << " of " << c.compared << " numbers are wrong, the first is " << c.first_wrong;
  EXPECT_GE(c.large, 4) << "of " << c.steps << " steps";
  EXPECT_GT(c.compared, 30000);
}

}  // namespace large_tensors_test
}  // namespace isotope::cuda
