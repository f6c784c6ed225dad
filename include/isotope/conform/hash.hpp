#pragma once
/// 64-bit FNV-1a, for seeds and the hash of the registry: the same value on every compiler and machine, also at compile time.
#include <cstdint>
#include <string_view>

namespace isotope::conform {

class stable_hash {
 public:
  constexpr stable_hash& add(std::string_view text) {
    for (const char c : text) byte(static_cast<unsigned char>(c));
    byte(0xff);  // a byte that no UTF-8 text has separates strings: "ab", "c" and "a", "bc" differ
    return *this;
  }
  constexpr stable_hash& add(std::uint64_t x) {
    for (int k = 0; k < 8; ++k) byte(static_cast<unsigned char>(x >> (8 * k)));
    return *this;
  }
  constexpr std::uint64_t value() const { return h_; }

 private:
  std::uint64_t h_ = 0xcbf29ce484222325u;
  constexpr void byte(unsigned char c) { h_ = (h_ ^ c) * 0x100000001b3u; }
};

static_assert(stable_hash().add("matmul").value() != stable_hash().add("matmu").add("l").value());

/// Returns sixteen digits.
struct hex_text {
  char digits[17]{};
  constexpr explicit hex_text(std::uint64_t x) {
    for (int k = 15; k >= 0; --k, x >>= 4) digits[k] = "0123456789abcdef"[x & 15];
  }
  constexpr std::string_view view() const { return {digits, 16}; }
};

}  // namespace isotope::conform
