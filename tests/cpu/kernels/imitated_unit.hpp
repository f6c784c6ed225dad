#pragma once
/// Emulates the matrix unit of kernels/cpu/native/gemm/matrix_unit.hpp in C++, as Intel's manual describes TDPBF16PS and its tiles. Needs vectors of 16 f32.
#include <isotope/kernels/cpu/native/gemm/matrix_unit.hpp>
#include <isotope/kernels/cpu/native/gemm/pairs.hpp>

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace isotope_test {

/// Faults that an emulation may have, to show that tests find them.
enum class unit_fault { none, loses_a_product, adds_a_tile_once_more };

template <unit_fault Fault = unit_fault::none> class imitated_unit {
 public:
  static constexpr bool there = true;
  static constexpr std::int64_t rows = 16, terms = 32;
  static bool permitted() { return true; }

  imitated_unit() {
    if (mine.configured) std::abort();
    mine = {};
    mine.configured = true;
  }
  ~imitated_unit() { mine.configured = false; }
  imitated_unit(const imitated_unit&) = delete;
  imitated_unit& operator=(const imitated_unit&) = delete;

  template <int T> static void zero() { tile(T) = {}; }
  template <int T> static void load(const void* at, std::int64_t stride) {
    for (int i = 0; i < 16; ++i) std::memcpy(&tile(T).row[i], static_cast<const std::byte*>(at) + i * stride, 64);
  }
  template <int T> static void store(void* at, std::int64_t stride) {
    for (int i = 0; i < 16; ++i) std::memcpy(static_cast<std::byte*>(at) + i * stride, &tile(T).row[i], 64);
  }
  template <int C, int A, int B> static void add_pairs() {
    const tile_data &a = tile(A), &b = tile(B);
    tile_data& c = tile(C);
    for (int m = 0; m < 16; ++m) {
      vector even{}, odd{};
      for (int k = 0; k < 16; ++k) {
        std::uint32_t pair;
        std::memcpy(&pair, reinterpret_cast<const std::byte*>(&a.row[m]) + 4 * k, 4);
        words both;
        std::memcpy(&both, &b.row[k], sizeof both);
        even = fused(number(pair << 16 | words{}), number(both << 16), even);
        if (Fault == unit_fault::loses_a_product && C == 0 && k == 15) continue;
        odd = fused(number((pair & 0xffff'0000u) | words{}), number(both & 0xffff'0000u), odd);
      }
      if (Fault == unit_fault::adds_a_tile_once_more && C == 3) c.row[m] = flushed(c.row[m] + even);
      c.row[m] = flushed(flushed(c.row[m]) + flushed(even + odd));
    }
  }

 private:
  using vector = isotope::cpu::native::vector;
  using words = isotope::cpu::native::words;
  struct tile_data {
    vector row[16]{};
  };
  struct state {
    bool configured = false;
    tile_data tiles[8];
  };
  inline static thread_local state mine{};
  static tile_data& tile(int t) {
    if (!mine.configured) std::abort();  // the processor would raise an illegal instruction
    return mine.tiles[t];
  }

  static words bits(const vector& v) {
    words u;
    std::memcpy(&u, &v, sizeof u);
    return u;
  }
  /// Flushes subnormals to zeros of the same sign.
  static vector number(words u) {
    u &= (u & 0x7f80'0000u) == 0 ? words{} + 0x8000'0000u : words{} + 0xffff'ffffu;
    vector v;
    std::memcpy(&v, &u, sizeof v);
    return v;
  }
  static vector flushed(const vector& v) { return number(bits(v)); }
  static vector fused(const vector& a, const vector& b, const vector& c) { return flushed(vector(isotope::cpu::isa::fma_lanes(a, b, c))); }
};

}  // namespace isotope_test
