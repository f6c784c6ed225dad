#pragma once
/// XXH3 with 64 bits: finds damage, not malice. The same value on every machine.
#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace isotope::io {

/// Hashes pieces as if they were contiguous.
class hasher {
 public:
  hasher() { XXH3_64bits_reset(&state_); }
  void add(std::span<const std::byte> bytes) {
    if (!bytes.empty()) XXH3_64bits_update(&state_, bytes.data(), bytes.size());
  }
  std::uint64_t value() const { return XXH3_64bits_digest(&state_); }

 private:
  XXH3_state_t state_;
};

namespace detail {

/// A hash as 16 hexadecimal digits.
inline std::string hash_digits(std::uint64_t hash) {
  constexpr std::string_view hex = "0123456789abcdef";
  std::string out;
  for (int shift = 60; shift >= 0; shift -= 4) out += hex[(hash >> shift) & 15];
  return out;
}

}  // namespace detail

}  // namespace isotope::io
