#pragma once
/// Lines of PTX.
#include <concepts>
#include <cstdint>
#include <string_view>
#include <vector>

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
    put('\n');
    return *this;
  }
  constexpr void put(std::string_view s) {
    for (const char c : s) all_.push_back(c);
  }
  constexpr void put(const char* s) { put(std::string_view(s)); }
  constexpr void put(const reg& r) {
    put('%');
    put(r.kind);
    put(r.number);
  }
  template <std::integral I> requires(!std::same_as<I, char>) constexpr void put(I n) {
    char digits[20]{};
    int count = 0;
    for (auto rest = std::uint64_t(n); rest > 0 || count == 0; rest /= 10) digits[count++] = char('0' + rest % 10);
    while (count > 0) put(digits[--count]);
  }
  constexpr void put(char c) { all_.push_back(c); }
  constexpr void put(const float_bits& f) {
    put("0f");
    for (int shift = 28; shift >= 0; shift -= 4) put("0123456789ABCDEF"[(f.bits >> shift) & 15u]);
  }
  constexpr void append(const text& other) { put(std::string_view(other.all_.data(), other.all_.size())); }
  constexpr std::vector<char> take() { return std::move(all_); }

 private:
  std::vector<char> all_;
};

}  // namespace isotope::cuda::ptx
