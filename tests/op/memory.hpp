#pragma once
/// Tensors of a test: as numbers, and as bytes in any format and memory order between guards.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <isotope/core/philox.hpp>
#include <isotope/core/precision.hpp>
#include <isotope/core/shape.hpp>
#include <limits>
#include <vector>

namespace isotope::op_test {

inline constexpr double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();

/// A tensor as numbers in row-major order. `strides` determine its layout in memory, which is dense unless they are changed.
struct host {
  shape dims;
  dtype type = dtype::f32;
  std::vector<double> at;
  extents strides{};

  host() = default;
  host(const shape& s, dtype t, std::vector<double> values) : dims(s), type(t), at(std::move(values)), strides(dense_strides(s)) {}
  double operator[](std::int64_t i) const { return at[std::size_t(i)]; }
  std::int64_t offset(std::int64_t i) const {
    std::int64_t n = 0;
    for (int k = dims.rank - 1; k >= 0; --k) {
      n += i % dims[k] * strides[std::size_t(k)];
      i /= dims[k];
    }
    return n;
  }
  std::int64_t span() const {
    std::int64_t n = 0;
    for (std::int64_t i = 0; i < dims.count(); ++i) n = std::max(n, offset(i) + 1);
    return n;
  }
  bool dense() const { return is_dense(dims, strides); }
};

/// x with the memory order `order` (outermost axis first), and a gap of `gap` elements after each innermost row.
inline host laid_out(host x, std::initializer_list<int> order, std::int64_t gap = 0) {
  std::int64_t n = 1;
  for (auto k = std::rbegin(order); k != std::rend(order); ++k) {
    x.strides[std::size_t(*k)] = n;
    n = n * x.dims[*k] + (k == std::rbegin(order) ? gap : 0);
  }
  return x;
}

inline void encode(dtype t, std::byte* to, double x) {
  const auto put = [&](auto y) { std::memcpy(to, &y, sizeof y); };
  switch (t) {
    case dtype::f32: return put(float(x));
    case dtype::bf16: return put(bfloat16(float(x)));
    case dtype::f16: return put(float16(float(x)));
    case dtype::f64: return put(x);
    case dtype::i32: return put(std::int32_t(x));
    case dtype::i64: return put(std::int64_t(x));
    case dtype::u8: return put(std::uint8_t(x));
    case dtype::u16: return put(std::uint16_t(x));
    case dtype::u32: return put(std::uint32_t(x));
    case dtype::boolean: return put(std::uint8_t(x != 0));
    case dtype::q8_0:
    case dtype::q4_0: return;  // formats of weights alone
  }
}
inline double decode(dtype t, const std::byte* from) {
  const auto get = [&](auto y) {
    std::memcpy(&y, from, sizeof y);
    return y;
  };
  switch (t) {
    case dtype::f32: return double(get(float{}));
    case dtype::bf16: return double(float(get(bfloat16{})));
    case dtype::f16: return double(float(get(float16{})));
    case dtype::f64: return get(double{});
    case dtype::i32: return double(get(std::int32_t{}));
    case dtype::i64: return double(get(std::int64_t{}));
    case dtype::u8: return double(get(std::uint8_t{}));
    case dtype::u16: return double(get(std::uint16_t{}));
    case dtype::u32: return double(get(std::uint32_t{}));
    case dtype::boolean: return double(get(std::uint8_t{}));
    case dtype::q8_0:
    case dtype::q4_0: break;  // formats of weights alone
  }
  return 0;
}
/// x rounded to format t.
inline double rounded(dtype t, double x) {
  std::byte b[8];
  encode(t, b, x);
  return decode(t, b);
}

/// The bytes of one tensor between guards. Bytes that belong to no element are 0xff, which is NaN in every floating-point format.
class memory {
 public:
  static constexpr std::size_t guard = 256;
  explicit memory(std::size_t bytes) : store_(bytes + 2 * guard + 64, std::byte{0xff}), bytes_(bytes) {}
  explicit memory(const host& x) : memory(std::size_t(x.span() * size_of(x.type))) {
    for (std::int64_t i = 0; i < x.dims.count(); ++i) encode(x.type, data() + x.offset(i) * size_of(x.type), x[i]);
  }
  std::byte* data() {
    const auto at = reinterpret_cast<std::uintptr_t>(store_.data());
    return store_.data() + ((at + guard + 63) / 64 * 64 - at);
  }
  /// Reads the elements back into x.
  void read(host& x) {
    x.at.assign(std::size_t(x.dims.count()), 0);
    for (std::int64_t i = 0; i < x.dims.count(); ++i) x.at[std::size_t(i)] = decode(x.type, data() + x.offset(i) * size_of(x.type));
  }
  /// Whether nothing was written outside the tensor.
  bool guarded() {
    for (std::byte* p = store_.data(); p != store_.data() + store_.size(); ++p)
      if ((p < data() || p >= data() + bytes_) && *p != std::byte{0xff}) return false;
    return true;
  }
  std::vector<std::byte> bytes() { return {data(), data() + bytes_}; }

 private:
  std::vector<std::byte> store_;
  std::size_t bytes_;
};

/// Random numbers, uniform in [low, high) and rounded to format t.
inline host random(const shape& s, dtype t, std::uint64_t seed, double low = -2, double high = 2) {
  std::vector<double> x(std::size_t(s.count()));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = rounded(t, low + (high - low) * double(unit_interval(philox(seed, i, 0, 0)[0])));
  return {s, t, std::move(x)};
}
inline host full(const shape& s, dtype t, double x) { return {s, t, std::vector<double>(std::size_t(s.count()), x)}; }

/// Unit roundoff of a format: rounding moves x by at most this times |x|.
inline double roundoff(dtype t) {
  return t == dtype::f64 ? 0x1p-53 : t == dtype::f32 ? 0x1p-24 : t == dtype::f16 ? 0x1p-11 : t == dtype::bf16 ? 0x1p-8 : 0;
}
/// Results below this may be zero; backends whose devices may flush subnormals set it.
inline double flushed_below = 0;
/// The spacing of the subnormals of a format, which is the error of results that underflow.
inline double least(dtype t) { return t == dtype::f64 ? 0x1p-1074 : t == dtype::f32 ? 0x1p-149 : t == dtype::f16 ? 0x1p-24 : 0x1p-133; }

/// Whether y equals `expected` up to `error(i)` and the rounding to the format of y. The additional 1 % allows for double rounding: to the
/// accumulation format, then to 16 bits.
template <class Error>::testing::AssertionResult near(const host& y, const std::vector<double>& expected, Error error) {
  if (y.at.size() != expected.size()) return ::testing::AssertionFailure() << y.at.size() << " elements, expected " << expected.size();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double a = y.at[i], e = expected[i];
    if ((std::isnan(a) && std::isnan(e)) || a == rounded(y.type, e)) continue;
    const double bound = 1.01 * roundoff(y.type) * std::fabs(e) + least(y.type) + flushed_below + error(i);
    if (std::isinf(e) || !(std::fabs(a - e) <= bound))
      return ::testing::AssertionFailure() << "element " << i << " is " << a << ", expected " << e << " within " << bound;
  }
  return ::testing::AssertionSuccess();
}
inline ::testing::AssertionResult near(const host& y, const std::vector<double>& expected, double error) {
  return near(y, expected, [=](std::size_t) { return error; });
}
/// Whether y holds the sums of the columns of x, up to `error` relative to the sums of the magnitudes.
inline ::testing::AssertionResult sums_columns(const host& y, const host& x, double error) {
  const auto C = x.dims.cols();
  std::vector<double> sums(std::size_t(C), 0), magnitudes(std::size_t(C), 0);
  for (std::size_t i = 0; i < x.at.size(); ++i) {
    sums[i % std::size_t(C)] += x.at[i];
    magnitudes[i % std::size_t(C)] += std::fabs(x.at[i]);
  }
  return near(y, sums, [&](std::size_t c) { return error * magnitudes[c]; });
}
/// Whether the numbers are equal; NaN equals NaN.
inline ::testing::AssertionResult same(const host& y, const std::vector<double>& expected) {
  if (y.at.size() != expected.size()) return ::testing::AssertionFailure() << y.at.size() << " elements, expected " << expected.size();
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (!(y.at[i] == expected[i] || (std::isnan(y.at[i]) && std::isnan(expected[i]))))
      return ::testing::AssertionFailure() << "element " << i << " is " << y.at[i] << ", expected " << expected[i];
  return ::testing::AssertionSuccess();
}

}  // namespace isotope::op_test
