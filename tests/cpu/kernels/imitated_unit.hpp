#pragma once
/// Emulates the matrix unit of kernels/cpu/native/gemm/matrix_unit.hpp in C++, as Intel's manual describes TDPBF16PS, TDPBSSD and their
/// tiles. Needs vectors of 16 f32.
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
  static constexpr bool there = true, has_bytes = true;
  static constexpr std::int64_t rows = 16, terms = 32;
  static bool permitted() { return true; }
  static bool bytes_permitted() { return true; }

  imitated_unit() : imitated_unit(isotope::cpu::native::whole_tiles) {}
  explicit imitated_unit(const isotope::cpu::native::tile_sizes& sizes) {
    if (mine.configured) std::abort();
    mine = {};
    mine.configured = true;
    mine.sizes = sizes;
  }
  ~imitated_unit() { mine.configured = false; }
  imitated_unit(const imitated_unit&) = delete;
  imitated_unit& operator=(const imitated_unit&) = delete;

  template <int T> static void zero() { tile(T) = {}; }
  template <int T> static void load(const void* at, std::int64_t stride) {
    tile(T) = {};
    for (int i = 0; i < mine.sizes.rows[T]; ++i)
      std::memcpy(&tile(T).row[i], static_cast<const std::byte*>(at) + i * stride, mine.sizes.row_bytes[T]);
  }
  template <int T> static void load_once(const void* at, std::int64_t stride) { load<T>(at, stride); }
  template <int T> static void store(void* at, std::int64_t stride) {
    for (int i = 0; i < mine.sizes.rows[T]; ++i)
      std::memcpy(static_cast<std::byte*>(at) + i * stride, &tile(T).row[i], mine.sizes.row_bytes[T]);
  }
  template <int C, int A, int B> static void add_pairs() {
    fits<C, A, B>();
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
  template <int C, int A, int B> static void add_bytes() {
    fits<C, A, B>();
    const tile_data &a = tile(A), &b = tile(B);
    tile_data& c = tile(C);
    const int lines = mine.sizes.rows[B];
    for (int m = 0; m < mine.sizes.rows[C]; ++m) {
      std::int32_t sum[16];
      std::int8_t left[64], right[64];
      std::memcpy(sum, &c.row[m], sizeof sum);
      std::memcpy(left, &a.row[m], sizeof left);
      for (int k = 0; k < lines; ++k) {
        if (Fault == unit_fault::loses_a_product && C == 0 && k == lines - 1) continue;
        std::memcpy(right, &b.row[k], sizeof right);
        for (int j = 0; j < 64; ++j) sum[j / 4] += std::int32_t(left[4 * k + j % 4]) * right[j];
      }
      if (Fault == unit_fault::adds_a_tile_once_more && C == 1) sum[m] += sum[m];
      std::memcpy(&c.row[m], sum, sizeof sum);
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
    isotope::cpu::native::tile_sizes sizes;
    tile_data tiles[8];
  };
  inline static thread_local state mine{};
  static tile_data& tile(int t) {
    if (!mine.configured) std::abort();  // the processor would raise an illegal instruction
    return mine.tiles[t];
  }

  /// The processor would raise an illegal instruction where the sizes of tiles do not agree.
  template <int C, int A, int B> static void fits() {
    const auto& s = mine.sizes;
    if (s.rows[C] != s.rows[A] || s.row_bytes[C] != s.row_bytes[B] || s.row_bytes[A] != 4 * s.rows[B]) std::abort();
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
