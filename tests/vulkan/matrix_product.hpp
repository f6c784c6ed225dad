#pragma once
/// Matrix products on the device that the tests share, with whatever limits the kernel is to believe, against sums in f64.
#include <isotope/backend/vulkan/command_buffers.hpp>
#include <isotope/backend/vulkan/constant_pool.hpp>
#include <isotope/kernels/vulkan/native/matmul.hpp>
#include <isotope/op/all.hpp>
#include <isotope/plan/kernels.hpp>

#include "../op/memory.hpp"
#include "device.hpp"

namespace isotope::vulkan_test {

using op_test::host;

/// y = alpha a b + beta c. `a` (..., M, K), `b` (..., K, N), `c` (..., M, N).
struct matrix_product {
  host a, b, c;
  dtype type = dtype::f32;  // of the product and y
  double alpha = 1, beta = 0;
  host into;               // what y holds before; with elements: the product is added to it
  float oscillation = -1;  // of b
  std::int64_t skip = 0;   // elements between an aligned address and each operand
  // An epilogue: relu(product + bias), and as a second result the sum of that and the residual.
  host bias, residual;  // (N), (M, N)

  bool has_c() const { return c.dims.rank >= 2; }
  bool fused() const { return bias.dims.rank == 1; }
  shape dims() const {
    shape pa, pb;
    for (int i = 0; i + 2 < a.dims.rank; ++i) pa.push(a.dims.axis(i));
    for (int i = 0; i + 2 < b.dims.rank; ++i) pb.push(b.dims.axis(i));
    shape y = broadcast(pa, pb).s;
    y.push(a.dims.axis(-2));
    y.push(b.dims.axis(-1));
    return y;
  }
};
struct product_run {
  host y, second;
  std::vector<vulkan::dispatch> dispatches;
};

using record_function = void (*)(const vulkan::launch&, vulkan::recording&);

/// Runs K, a kernel of op::matmul, twice: the same bits, nothing written outside y and scratch. `record`: how K is recorded.
template <class K> product_run run(const matrix_product& p, const vulkan::device_limits& device, record_function record = K::record) {
  auto& d = test_device();
  product_run r;
  r.y = op_test::full(p.dims(), p.type, op_test::nan);
  const attributes attr = op::matmul::constants{.format = p.type,
                                                .operands = p.has_c() ? 3 : 2,
                                                .half_weight = p.a.type == dtype::f32 && p.b.type == dtype::f16,
                                                .alpha = p.alpha,
                                                .beta = p.beta};

  std::vector<const host*> in{&p.a, &p.b};
  if (p.has_c()) in.push_back(&p.c);
  std::vector<micro_op> body;
  std::vector<host*> outs{&r.y};
  if (p.fused()) {
    const auto own = std::int8_t(in.size());
    in.push_back(&p.bias);
    in.push_back(&p.residual);
    r.second = r.y;
    outs.push_back(&r.second);
    body = {{&info<op::add>, {isotope::gemm_result, own, -1}, -1, p.type, 0},
            {&info<op::relu>, {8, -1, -1}, 0, p.type, 0},
            {&info<op::add>, {9, std::int8_t(own + 1), -1}, 1, p.type, 0}};
  }
  std::vector<shape> in_dims, out_dims{r.y.dims};
  for (const host* x : in) in_dims.push_back(x->dims);
  const std::int64_t scratch_bytes = K::scratch(step_shapes{in_dims, out_dims, &attr});

  std::int64_t end = 256;
  const auto place = [&](std::int64_t bytes, std::int64_t skipped = 0) {
    const std::int64_t at = end + skipped;
    end = (at + bytes + 255) / 256 * 256 + 256;
    return at;
  };
  std::vector<std::int64_t> at;
  for (const host* x : in) at.push_back(place(x->span() * size_of(x->type), p.skip * size_of(x->type)));
  const std::int64_t y_bytes = r.y.span() * size_of(p.type), y_at = place(y_bytes), second_at = place(p.fused() ? y_bytes : 0),
                     scratch_at = place(scratch_bytes);
  auto allocated = vulkan::memory::allocate(d.context, end, isotope::memory_use::readback, "operands");
  EXPECT_TRUE(bool(allocated));
  if (!allocated) return r;
  std::vector<std::byte> first(std::size_t(end), std::byte{0xff});
  const auto put = [&](std::int64_t to, const host& x) {
    for (std::int64_t i = 0; i < x.dims.count(); ++i) op_test::encode(x.type, first.data() + to + x.offset(i) * size_of(x.type), x[i]);
  };
  for (std::size_t k = 0; k < in.size(); ++k) put(at[k], *in[k]);
  const bool adds = p.into.dims.rank != 0;
  if (adds) put(y_at, p.into);

  std::vector<vulkan::view> views;
  for (std::size_t k = 0; k < in.size(); ++k)
    views.push_back(
        {allocated->address() + std::uint64_t(at[k]), in[k]->span() * size_of(in[k]->type), in[k]->dims, in[k]->strides, in[k]->type});
  std::vector<vulkan::view> out{{allocated->address() + std::uint64_t(y_at), y_bytes, r.y.dims, r.y.strides, p.type}};
  if (p.fused()) out.push_back({allocated->address() + std::uint64_t(second_at), y_bytes, r.y.dims, r.y.strides, p.type});
  vulkan::constant_pool const_pool(d.context);
  vulkan::recording rec(const_pool, *d.pipelines);
  vulkan::launch l;
  l.in = views;
  l.out = out;
  l.attr = &attr;
  l.body = body;
  l.scratch = allocated->address() + std::uint64_t(scratch_at);
  l.scratch_bytes = scratch_bytes;
  l.accumulate = adds ? 1 : 0;
  l.oscillation = p.oscillation;
  l.device = &device;
  vulkan::enter_set(rec, kernel_traits<K>::set::name);
  record(l, rec);
  r.dispatches = rec.dispatches;

  std::vector<std::byte> result;
  for (int turn = 0; turn < 2 && !r.dispatches.empty(); ++turn) {
    std::memcpy(allocated->mapped(), first.data(), first.size());
    const auto before = isotope::plan_barriers(r.dispatches);
    auto pool = vulkan::command_pool::create(d.context);
    auto commands = pool->buffer();
    auto made = d.pipelines->make(r.dispatches);
    EXPECT_TRUE(bool(made)) << (made ? "" : made.error().line());
    if (!made) return r;
    EXPECT_TRUE(bool(vulkan::record_commands(*d.context, *d.pipelines, *commands, r.dispatches, before)));
    auto value = d.context->submit(*commands);
    EXPECT_TRUE(value && d.context->wait(*value));
    if (turn == 1) { EXPECT_EQ(std::memcmp(result.data(), allocated->mapped(), result.size()), 0) << "other bits in the second run"; }
    result.assign(allocated->mapped(), allocated->mapped() + end);
  }
  if (result.empty()) return r;
  for (std::int64_t i = 0; i < end; ++i) {
    const bool own = (i >= y_at && i < y_at + y_bytes) || (p.fused() && i >= second_at && i < second_at + y_bytes) ||
                     (i >= scratch_at && i < scratch_at + scratch_bytes);
    if (!own && first[std::size_t(i)] != result[std::size_t(i)]) {
      ADD_FAILURE() << "byte " << i << " outside y was written";
      break;
    }
  }
  for (std::size_t k = 0; k < outs.size(); ++k)
    for (std::int64_t i = 0; i < r.y.dims.count(); ++i)
      outs[k]->at[std::size_t(i)] = op_test::decode(p.type, result.data() + (k == 0 ? y_at : second_at) + i * size_of(p.type));
  return r;
}

/// The epilogue gives the bits of separate ops on the product's bits.
template <class K> void compare_fused(matrix_product p, const vulkan::device_limits& device, record_function record = K::record) {
  const host plain = run<K>(p, device, record).y;
  p.bias = op_test::random({plain.dims[-1]}, p.type, 6);
  p.residual = op_test::random(plain.dims, p.type, 7);
  const auto r = run<K>(p, device, record);
  for (std::int64_t i = 0; i < plain.dims.count(); ++i) {
    const auto sum = [&](double a, double b) { return op_test::rounded(p.type, double(float(a) + float(b))); };
    const double first = std::max(sum(plain[i], p.bias[i % plain.dims[-1]]), 0.0), second = sum(first, p.residual[i]);
    if (r.y[i] != first || r.second[i] != second) {
      ADD_FAILURE() << "element " << i << " is " << r.y[i] << ", " << r.second[i] << ", expected " << first << ", " << second;
      return;
    }
  }
}

inline vulkan::device_limits here() { return test_device().context->physical().limits; }
inline bool ran(const product_run& r, std::string_view module) {
  for (const auto& d : r.dispatches)
    if (d.code->name.starts_with(module)) return true;
  return false;
}
/// Operands in one of the four memory orders, `gap` elements between lines.
inline matrix_product two_matrices(std::int64_t M, std::int64_t K, std::int64_t N, int order, dtype in, dtype out, std::int64_t gap = 0) {
  matrix_product p;
  p.a = op_test::random({M, K}, in, 1);
  p.b = op_test::random({K, N}, in, 2);
  p.a = (order & 1) != 0 ? op_test::laid_out(p.a, {1, 0}, gap) : op_test::laid_out(p.a, {0, 1}, gap);
  p.b = (order & 2) != 0 ? op_test::laid_out(p.b, {1, 0}, gap) : op_test::laid_out(p.b, {0, 1}, gap);
  p.type = out;
  return p;
}
/// Batches of (M, 12) by (12, 8), leading axes as given.
inline matrix_product batched(shape left, shape right, std::int64_t M, dtype t, bool with_c) {
  for (std::int64_t n : {M, std::int64_t(12)}) left.push(n);
  for (std::int64_t n : {12, 8}) right.push(n);
  matrix_product p;
  p.a = op_test::random(left, t, 1);
  p.b = op_test::random(right, t, 2);
  p.type = t;
  if (with_c) {
    p.c = op_test::random(p.dims(), t, 3);
    p.beta = -0.5;
  }
  return p;
}
/// Leading axes that repeat, that continue one another, and that do neither.
inline const shape batch_axes[][2] = {{{3}, {3}}, {{3}, {}}, {{}, {3}}, {{2, 1}, {1, 3}}, {{2, 1, 2, 1}, {1, 3, 1, 2}}, {{2, 3}, {3}}};
/// Weights that alternate in sign, so that neighbours cancel and a wrong place changes everything.
inline matrix_product alternating(std::int64_t M, std::int64_t K, std::int64_t N, int order, dtype t) {
  matrix_product p = two_matrices(M, K, N, order, t, dtype::f32);
  for (std::size_t i = 0; i < p.a.at.size(); ++i) p.a.at[i] = op_test::rounded(t, 1 + 0.01 * p.a.at[i]);
  for (std::size_t i = 0; i < p.b.at.size(); ++i)
    p.b.at[i] = op_test::rounded(t, ((i / std::size_t(N) + i % std::size_t(N)) % 2 == 0 ? 1 : -1) * (1 + 0.01 * p.b.at[i]));
  return p;
}
inline std::string described(const matrix_product& p, int order = 0) {
  fixed_string<128> t;
  t << p.a.dims << " " << p.b.dims << " order " << order << " " << name_of(p.a.type) << " to " << name_of(p.type);
  return std::string(t.view());
}

/// Whether y is the product, each element within the rounding of its K products (a unit roundoff of f32 for each addition, another for what matrix
/// units do inside) and of the format of y.
inline ::testing::AssertionResult right(const matrix_product& p, const host& y) {
  const std::int64_t M = y.dims[-2], N = y.dims[-1], K = p.a.dims[-1], batches = M * N == 0 ? 0 : y.dims.count() / (M * N);
  const auto matrix = [&](const host& x, std::int64_t batch, std::int64_t rows, std::int64_t cols) {
    std::int64_t at = 0, step = 1;
    for (int i = y.dims.rank - 3, k = x.dims.rank - 3; i >= 0; batch /= y.dims[i], --i, --k)
      if (k >= 0) {
        at += x.dims[k] == 1 ? 0 : batch % y.dims[i] * step;
        step *= x.dims[k];
      }
    return at * rows * cols;
  };
  for (std::int64_t b = 0; b < batches; ++b) {
    const std::int64_t a0 = matrix(p.a, b, M, K), b0 = matrix(p.b, b, K, N);
    for (std::int64_t m = 0; m < M; ++m)
      for (std::int64_t n = 0; n < N; ++n) {
        const std::int64_t i = (b * M + m) * N + n;
        double sum = 0, size = 0;
        for (std::int64_t k = 0; k < K; ++k) {
          const double x = p.a[a0 + m * K + k] * p.b[b0 + k * N + n];
          sum += x;
          size += std::fabs(x);
        }
        double want = p.alpha * sum;
        size *= std::fabs(p.alpha);
        if (p.beta != 0) {
          const double x = p.beta * p.c[matrix(p.c, b, M, N) + m * N + n];
          want += x;
          size += std::fabs(x);
        }
        double slack = 2 * double(K + 2) * 0x1p-24 * size;
        if (p.into.dims.rank != 0) {
          slack += op_test::roundoff(p.type) * std::fabs(want);  // the product is rounded before it is added
          want += p.into[i];
        }
        const double bound = slack + 1.01 * op_test::roundoff(p.type) * std::fabs(want) + op_test::least(p.type);
        if (!(std::fabs(y[i] - want) <= bound))
          return ::testing::AssertionFailure() << "batch " << b << " [" << m << "," << n << "] is " << y[i] << ", expected " << want
                                               << " within " << bound;
      }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace isotope::vulkan_test
