#pragma once
/// Unpacks weights in blocks (core/quantized.hpp) to pairs of bf16, as pair_operands packs them: each element is its scale times its code, rounded to bf16.
///
/// Bound by conversions: 9 instructions for 16 pairs. No element is subnormal in f32, since scales are in f16.
#include <bit>

#include <isotope/kernels/cpu/gemm/blocks.hpp>
#include <isotope/kernels/cpu/native/gemm/pairs.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// Unpacks rows n to n + count - 1 of a weight, n a multiple of 16 and count at most 16. Further rows of the panel become zeros.
class block_pairs {
 public:
  block_pairs(const portable::block_weight& w, std::int64_t n, std::int64_t count) : w_(w), n_(n), count_(count) {}

  /// y[t ld + r] = the pair of elements k0 + 2 t and k0 + 2 t + 1 of row n + r, for 2 t < terms; k0 and terms are even.
  void take(std::int64_t k0, std::int64_t terms, float* y, std::int64_t ld) {
    if (w_.type == dtype::q8_0) take<dtype::q8_0>(k0, terms, y, ld);
    else take<dtype::q4_0>(k0, terms, y, ld);
  }
  /// Bounds of the exponents of nonzero elements, as exponents::least and largest say them; 512 and 0 without scales but zero.
  int least() const {
    float all = __builtin_inff();
    for (int r = 0; r < 16; ++r) all = least_[r] < all ? least_[r] : all;
    return all == __builtin_inff() ? 512 : int(std::bit_cast<std::uint32_t>(all) >> 23);
  }
  int largest() const {
    float all = 0;
    for (int r = 0; r < 16; ++r) all = largest_[r] > all ? largest_[r] : all;
    const int e = int(std::bit_cast<std::uint32_t>(all) >> 23);  // codes are at most 2^7, and their products are rounded
    for (int r = 0; r < 16; ++r)
      if (odd_[r] != 0) return 255;
    return all == 0 ? 0 : e + 8;
  }

 private:
  using sixteen = portable::sixteen;
  using words_of_sixteen __attribute__((vector_size(64))) = std::uint32_t;
  using halves __attribute__((vector_size(64))) = std::uint16_t;
  const portable::block_weight& w_;
  std::int64_t n_, count_;
  sixteen least_ = __builtin_inff() - sixteen{}, largest_{};  // magnitudes of scales
  words_of_sixteen odd_{};                                    // not 0: a scale is not finite

  template <dtype Type> ISOTOPE_NOINLINE void take(std::int64_t k0, std::int64_t terms, float* y, std::int64_t ld) {
    for (std::int64_t k = k0, end = k0 + terms; k < end;) {
      const std::int64_t first = k % quantized::block, some = smaller(quantized::block - first, end - k);
      const std::byte* record = count_ > 0 ? w_.record(n_, k) : nullptr;
      if (some == quantized::block) {
        unpack<Type>(record, y, ld);
      } else {
        float pairs[quantized::block / 2 * quantized::panel_rows];
        unpack<Type>(record, pairs, quantized::panel_rows);
        for (std::int64_t t = 0; t < some / 2; ++t)
          __builtin_memcpy(y + t * ld, pairs + (first / 2 + t) * quantized::panel_rows, sizeof(sixteen));
      }
      k += some;
      y += some / 2 * ld;
    }
  }
  template <dtype Type> ISOTOPE_INLINE void unpack(const std::byte* record, float* y, std::int64_t ld) {
    sixteen scale{};
    if (record != nullptr) {
      if constexpr (lanes == 16) {
        const vector all = load_vector(reinterpret_cast<const float16*>(record));
        __builtin_memcpy(&scale, &all, sizeof all);
      } else {
        portable::load_sixteen(reinterpret_cast<const float16*>(record), scale);
      }
    }
    words_of_sixteen there = ~words_of_sixteen{};
    if (count_ < quantized::panel_rows)
      for (std::int64_t r = count_ < 0 ? 0 : count_; r < quantized::panel_rows; ++r) scale[r] = 0, there[r] = 0;
    note(scale);
#pragma GCC unroll 16
    for (std::int64_t j = 0; j < quantized::block; j += 2) {
      sixteen low{}, high{};
      if (record != nullptr) load<Type>(record, j, low), load<Type>(record, j + 1, high);
      low *= scale, high *= scale;
      words_of_sixteen pairs;
      pair(low, high, pairs);
      pairs &= there;
      __builtin_memcpy(y + j / 2 * ld, &pairs, sizeof pairs);
    }
  }
  template <dtype Type> static ISOTOPE_INLINE void load(const std::byte* record, std::int64_t j, sixteen& v) {
    if constexpr (Type == dtype::q8_0 && config::has_lane_tables && lanes == 16) {
      portable::code_words w;
      isa::widen_bytes(w, record + quantized::panel_rows * (2 + j));
      v = __builtin_convertvector(w, sixteen);
    } else {
      portable::load_codes(Type, record, j, v);
    }
  }
  ISOTOPE_INLINE void note(const sixteen& scale) {
    const words_of_sixteen size = std::bit_cast<words_of_sixteen>(scale) & 0x7fff'ffffu;
    const sixteen d = std::bit_cast<sixteen>(size);
    largest_ = d > largest_ ? d : largest_;
    least_ = ((d < least_) & (d > 0.0f)) ? d : least_;
    odd_ |= std::bit_cast<words_of_sixteen>(size >= 0x7f80'0000u);
  }
  template <int... J> static ISOTOPE_INLINE words_of_sixteen in_pairs(const halves& v, std::integer_sequence<int, J...>) {
    return std::bit_cast<words_of_sixteen>(halves(__builtin_shufflevector(v, v, (J / 2 + J % 2 * 16)...)));
  }
  /// Rounds both; vectors of sixteen pass by reference, since processors without AVX-512 have no registers for them.
  static ISOTOPE_INLINE void pair(sixteen& low, sixteen& high, words_of_sixteen& to) {
    if constexpr (config::has_bf16_pairs && lanes == 16) {
      halves both{};
      isa::round_two_to_bf16(both, low, high);
      to = in_pairs(both, std::make_integer_sequence<int, 32>{});
    } else {
      portable::round_elements(low);
      portable::round_elements(high);
      to = std::bit_cast<words_of_sixteen>(low) >> 16 | std::bit_cast<words_of_sixteen>(high);
    }
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
