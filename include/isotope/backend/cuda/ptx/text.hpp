#pragma once
/// Lines of PTX.
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace isotope::cuda::ptx {

/// A register: %v12.
struct reg {
  char kind = 'v';  // v, i, w: 32 bits; d: 64; h: 16; p, q: a predicate
  std::uint32_t number = 0;
};
/// A number as an operand: 0f3F800000.
struct float_bits {
  std::uint32_t bits = 0;
};

class text {
 public:
  /// Appends the parts and ends the line.
  template <class... Part> constexpr text& line(const Part&... parts) {
    (put(parts), ...);
    all_ += '\n';
    return *this;
  }
  constexpr void put(std::string_view s) { all_.append(s); }
  constexpr void put(const char* s) { all_.append(std::string_view(s)); }
  constexpr void put(const reg& r) {
    all_ += '%';
    all_ += r.kind;
    put(r.number);
  }
  template <std::integral I> requires(!std::same_as<I, char>) constexpr void put(I n) {
    char digits[20]{};
    int count = 0;
    for (auto rest = std::uint64_t(n); rest > 0 || count == 0; rest /= 10) digits[count++] = char('0' + rest % 10);
    while (count > 0) all_ += digits[--count];
  }
  constexpr void put(char c) { all_ += c; }
  constexpr void put(const float_bits& f) {
    all_.append(std::string_view("0f"));
    for (int shift = 28; shift >= 0; shift -= 4) all_ += "0123456789ABCDEF"[(f.bits >> shift) & 15u];
  }
  constexpr void append(const text& other) { all_.append(other.all_); }
  constexpr std::string take() { return std::move(all_); }

 private:
  std::string all_;
};

}  // namespace isotope::cuda::ptx
