#pragma once
/// Text of fixed capacity that a constant expression can build, keep and use as a template argument.
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace isotope {

/// Up to N characters. Appending more truncates the text and sets `overflow`; callers that need the whole text report an error.
/// Characters past the end are zero, so equal texts have equal bytes.
template <std::size_t N> struct fixed_string {
  char chars[N]{};
  std::uint32_t length = 0;
  bool overflow = false;

  constexpr fixed_string() = default;
  constexpr fixed_string(std::string_view s) { *this << s; }
  constexpr fixed_string(const char* s) { *this << std::string_view(s); }

  constexpr std::size_t size() const { return length; }
  constexpr const char* data() const { return chars; }
  constexpr bool empty() const { return length == 0; }
  constexpr std::string_view view() const { return {chars, length}; }
  constexpr operator std::string_view() const { return view(); }

  constexpr fixed_string& operator<<(std::string_view s) {
    for (char c : s) put(c);
    return *this;
  }
  constexpr fixed_string& operator<<(const char* s) { return *this << std::string_view(s); }
  constexpr fixed_string& operator<<(char c) {
    put(c);
    return *this;
  }
  constexpr fixed_string& operator<<(std::int64_t v) {
    if (v < 0) put('-');
    std::uint64_t rest = v < 0 ? std::uint64_t(0) - std::uint64_t(v) : std::uint64_t(v);
    char digits[20]{};
    int n = 0;
    do {
      digits[n++] = char('0' + rest % 10);
      rest /= 10;
    } while (rest != 0);
    while (n > 0) put(digits[--n]);
    return *this;
  }
  constexpr fixed_string& operator<<(int v) { return *this << std::int64_t(v); }
  /// Prints six decimals, without trailing zeros; magnitudes of 1e12 and more print as `inf`.
  constexpr fixed_string& operator<<(double v) {
    if (v != v) return *this << "nan";
    if (v < 0) put('-');
    const double size = v < 0 ? -v : v;
    if (!(size < 1e12)) return *this << "inf";
    const auto millionths = std::int64_t(size * 1e6 + 0.5);
    *this << millionths / 1000000;
    std::int64_t rest = millionths % 1000000;
    if (rest != 0) put('.');
    for (std::int64_t unit = 100000; rest != 0; rest %= unit, unit /= 10) put(char('0' + rest / unit));
    return *this;
  }

  friend constexpr bool operator==(const fixed_string& a, const fixed_string& b) { return a.view() == b.view(); }

 private:
  constexpr void put(char c) {
    if (length < N) chars[length++] = c;
    else overflow = true;
  }
};

using message = fixed_string<320>;  // one diagnostic line
using name = fixed_string<96>;      // a parameter's path, e.g. bert.encoder.layer.11.attention.output.LayerNorm.weight

}  // namespace isotope
