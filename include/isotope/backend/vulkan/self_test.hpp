#pragma once
/// What a driver's matrix units are tried on before they are trusted: gemms in three memory orders against f64, rounding to nearest, the same bits
/// twice. Drivers are known that fail each of these; a list of their versions would be out of date.
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "../../core/philox.hpp"
#include "../../op/matmul.hpp"
#include "command_buffers.hpp"
#include "constant_pool.hpp"

namespace isotope::vulkan {

/// Runs Kernel, a matmul, on operands of format t. Returns why its results cannot be trusted; empty where they can.
template <class Kernel> class matrix_self_test {
 public:
  matrix_self_test(std::shared_ptr<context> c, pipelines& made) : context_(std::move(c)), made_(made) {}

  std::string run(dtype t) {
    for (const order o : {order{"NN", false, true}, order{"NT", false, false}, order{"TN", true, true}})
      if (auto why = matmul(t, o); !why.empty()) return "self-test, " + std::string(o.name) + ": " + why;
    return {};
  }

 private:
  static constexpr std::int64_t M = 256, N = 128, K = 128;  // two tiles, two slabs
  struct order {
    const char* name;
    bool a_cross, b_cross;  // lines run across K
  };
  std::shared_ptr<context> context_;
  pipelines& made_;

  static std::uint16_t bits_of(dtype t, float x) { return t == dtype::bf16 ? bfloat16(x).bits : float16(x).bits; }
  static float value_of(dtype t, std::uint16_t bits) {
    if (t == dtype::bf16) return std::bit_cast<float>(std::uint32_t(bits) << 16);
    float16 x;
    x.bits = bits;
    return float(x);
  }
  static std::vector<std::uint16_t> numbers(dtype t, std::int64_t n, std::uint64_t seed) {
    std::vector<std::uint16_t> r(std::size_t(n), 0);
    for (std::size_t i = 0; i < r.size(); ++i) r[i] = bits_of(t, 2 * unit_interval(philox(seed, i, 0, 0)[0]) - 1);
    return r;
  }

  std::string matmul(dtype t, const order& o) {
    const auto a = numbers(t, M * K, 1), b = numbers(t, K * N, 2);
    constexpr std::int64_t a_bytes = 2 * M * K, b_bytes = 2 * K * N, y_bytes = 2 * M * N;
    const attributes attr = op::matmul::constants{.format = t, .operands = 2, .alpha = 1};
    const std::array<shape, 2> in_dims{shape{M, K}, shape{K, N}};
    const shape out_dims{M, N};
    const std::int64_t scratch = Kernel::scratch({in_dims, {&out_dims, 1}, &attr});
    auto m = memory::allocate(context_, 512 + a_bytes + b_bytes + y_bytes + scratch, memory_use::readback, "isotope self-test");
    if (!m) return m.error().line();
    std::memcpy(m->mapped() + 256, a.data(), std::size_t(a_bytes));
    std::memcpy(m->mapped() + 256 + a_bytes, b.data(), std::size_t(b_bytes));
    const std::uint64_t at = m->address() + 256;
    const std::array<view, 2> in{view{at, a_bytes, in_dims[0], o.a_cross ? extents{1, M} : extents{K, 1}, t},
                                 view{at + std::uint64_t(a_bytes), b_bytes, in_dims[1], o.b_cross ? extents{N, 1} : extents{1, K}, t}};
    const view out{at + std::uint64_t(a_bytes + b_bytes), y_bytes, out_dims, extents{N, 1}, t};
    launch l;
    l.in = in;
    l.out = {&out, 1};
    l.attr = &attr;
    l.scratch = at + std::uint64_t(a_bytes + b_bytes + y_bytes);
    l.scratch_bytes = scratch;
    l.scalars = m->address();
    l.device = &context_->physical().limits;
    constant_pool const_pool(context_);
    recording r(const_pool, made_);
    Kernel::record(l, r);
    std::vector<std::uint16_t> first, y(std::size_t(M * N));
    auto pool = command_pool::create(context_);
    if (!pool) return pool.error().line();
    if (auto done = made_.make(r.dispatches); !done) return done.error().line();
    auto commands = pool->buffer();
    if (!commands) return commands.error().line();
    if (auto done = record_commands(*context_, made_, *commands, r.dispatches, plan_barriers(r.dispatches)); !done)
      return done.error().line();
    for (int turn = 0; turn < 2; ++turn) {
      std::memset(m->mapped() + 256 + a_bytes + b_bytes, 0xff, std::size_t(y_bytes));
      auto value = context_->submit(*commands);
      if (!value) return value.error().line();
      if (auto done = context_->wait(*value); !done) return done.error().line();
      std::memcpy(y.data(), m->mapped() + 256 + a_bytes + b_bytes, std::size_t(y_bytes));
      if (turn == 0) first = y;
    }
    if (y != first) return "the same product gave other bits the second time";
    return compare(t, o, a, b, y);
  }

  /// 512 elements against f64: K roundings in f32, one of the result to nearest. Truncation errs twice as far and fails.
  std::string compare(dtype t, const order& o, const std::vector<std::uint16_t>& a, const std::vector<std::uint16_t>& b,
                      const std::vector<std::uint16_t>& y) const {
    const double roundoff = t == dtype::bf16 ? 0x1p-9 : 0x1p-12;  // half a unit in the last place, relative to a power of two
    for (std::uint64_t i = 0; i < 512; ++i) {
      const auto w = philox(3, i, 0, 0);
      const std::int64_t m = w[0] % M, n = w[1] % N;
      double sum = 0, size = 0;
      for (std::int64_t k = 0; k < K; ++k) {
        const double x = double(value_of(t, a[std::size_t(o.a_cross ? k * M + m : m * K + k)])) *
                         double(value_of(t, b[std::size_t(o.b_cross ? k * N + n : n * K + k)]));
        sum += x;
        size += std::fabs(x);
      }
      int exponent = 0;
      std::frexp(sum, &exponent);
      const double bound = roundoff * std::ldexp(1.0, exponent) * 1.001 + double(K + 8) * 0x1p-24 * size;
      const double got = double(value_of(t, y[std::size_t(m * N + n)])) + (context_->options.diagnose.distrust_matrix_units ? 1.0 : 0.0);
      if (!(std::fabs(got - sum) <= bound))
        return "element (" + std::to_string(m) + "," + std::to_string(n) + ") is " + std::to_string(got) + ", not " + std::to_string(sum);
    }
    return {};
  }
};

}  // namespace isotope::vulkan
