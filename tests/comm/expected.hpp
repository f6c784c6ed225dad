#pragma once
/// What operations of a group must give, by plain loops that share no code with the transports, and numbers to try them on.
#include <isotope/comm/communicator.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

namespace comm_test {

using isotope::dtype;
using isotope::reduction;
using bytes = std::vector<std::byte>;

/// A stream of numbers that every rank can compute: splitmix64.
struct numbers {
  std::uint64_t state;
  std::uint64_t next() {
    state += 0x9e37'79b9'7f4a'7c15u;
    std::uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58'476d'1ce4'e5b9u;
    z = (z ^ (z >> 27)) * 0x94d0'49bb'1331'11ebu;
    return z ^ (z >> 31);
  }
  int below(int n) { return int(next() % std::uint64_t(n)); }
};

/// Numbers whose sums depend on their order; one of sixteen is a zero, an infinity, a NaN, a subnormal or near overflow.
template <class T> T sample(numbers& from) {
  const std::uint64_t bits = from.next();
  if constexpr (std::is_integral_v<T>) {
    return T(bits);
  } else {
    const double x = std::ldexp(double(std::int64_t(bits)), -63) * std::ldexp(1.0, int(bits % 7) * 3);
    using wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
    switch (bits >> 56 & 127) {
      case 0: return T(wide(-0.0));
      case 1: return T(std::numeric_limits<wide>::infinity());
      case 2: return T(-std::numeric_limits<wide>::infinity());
      case 3: return T(-std::numeric_limits<wide>::quiet_NaN());
      case 4: return T(wide(x) * std::numeric_limits<wide>::denorm_min());
      case 5: return T(std::numeric_limits<wide>::max());
      case 6: return T(wide(0));
      default: return T(wide(x));
    }
  }
}

/// Calls f(T{}) with the C++ type of a dtype.
template <class F> auto with_type(dtype t, const F& f) {
  switch (t) {
    case dtype::f64: return f(double{});
    case dtype::bf16: return f(isotope::bfloat16{});
    case dtype::f16: return f(isotope::float16{});
    case dtype::i32: return f(std::int32_t{});
    case dtype::i64: return f(std::int64_t{});
    default: return f(float{});
  }
}
constexpr dtype all_types[] = {dtype::f32, dtype::f64, dtype::bf16, dtype::f16, dtype::i32, dtype::i64};

/// The numbers that rank r gives.
inline bytes given(dtype t, std::size_t elems, int rank, std::uint64_t seed) {
  return with_type(t, [&]<class T>(T) {
    numbers from{seed * 1009 + std::uint64_t(rank)};
    bytes b(elems * sizeof(T));
    for (std::size_t i = 0; i < elems; ++i) {
      const T x = sample<T>(from);
      std::memcpy(b.data() + i * sizeof(T), &x, sizeof(T));
    }
    return b;
  });
}

/// The combination of what all ranks give, as the contract of `communicator` says. NaNs have the bits of the quiet one.
inline bytes combined(dtype t, std::size_t elems, int ranks, reduction how, std::uint64_t seed) {
  return with_type(t, [&]<class T>(T) {
    using wide = std::conditional_t<std::is_same_v<T, double>, double, std::conditional_t<std::is_integral_v<T>, T, float>>;
    std::vector<bytes> x;
    for (int r = 0; r < ranks; ++r) x.push_back(given(t, elems, r, seed));
    const auto at = [&](int r, std::size_t i) {
      T v;
      std::memcpy(&v, x[std::size_t(r)].data() + i * sizeof(T), sizeof(T));
      return wide(v);
    };
    bytes b(elems * sizeof(T));
    for (std::size_t i = 0; i < elems; ++i) {
      wide y = at(0, i);
      for (int r = 1; r < ranks; ++r) {
        const wide z = at(r, i);
        if constexpr (std::is_integral_v<T>) y = how == reduction::sum ? T(std::uint64_t(y) + std::uint64_t(z)) : y < z ? z : y;
        else y = how == reduction::sum ? y + z : std::isnan(y) || std::isnan(z) ? std::numeric_limits<wide>::quiet_NaN() : y < z ? z : y;
      }
      if constexpr (!std::is_integral_v<T>)
        if (std::isnan(y)) y = std::numeric_limits<wide>::quiet_NaN();
      const T rounded = T(y);
      std::memcpy(b.data() + i * sizeof(T), &rounded, sizeof(T));
    }
    return b;
  });
}

}  // namespace comm_test
