#pragma once
/// A weight in blocks whose codes are unpacked once, kept across steps: of 16 rows of activations, unpacking would take a fifth of the time of the products.
#include <isotope/kernels/cpu/gemm/blocks.hpp>
#include <isotope/kernels/cpu/native/gemm/a8_tiles.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// The layout of a weight (N, K): a cache line with the format of the blocks, then the tiles of a panel of 16 rows, a block of K after the other, and the other
/// panels. Codes are unsigned.
class a8_packed_weight {
 public:
  a8_packed_weight(std::int64_t N, std::int64_t K) : blocks_(K / quantized::block), panels_(divide_up(N, quantized::panel_rows)) {}
  std::int64_t panels() const { return panels_; }
  std::int64_t bytes() const { return head + panels_ * blocks_ * std::int64_t(sizeof(a8_panel_tile)); }

  static dtype type(const void* packed) { return dtype(*static_cast<const std::int32_t*>(packed)); }
  static void set_type(void* packed, dtype t) { *static_cast<std::int32_t*>(packed) = std::int32_t(t); }
  /// The tiles of panel p.
  const a8_panel_tile* panel(const void* packed, std::int64_t p) const {
    return reinterpret_cast<const a8_panel_tile*>(static_cast<const std::byte*>(packed) + head) + p * blocks_;
  }
  /// Unpacks panel p.
  void pack(const portable::block_weight& w, std::int64_t p, void* packed) const {
    auto* const to = const_cast<a8_panel_tile*>(panel(packed, p));
    if (w.type == dtype::q8_0) take<dtype::q8_0>(w, p, to);
    else take<dtype::q4_0>(w, p, to);
  }

 private:
  static constexpr std::int64_t head = 64;
  std::int64_t blocks_, panels_;

  template <dtype Type> void take(const portable::block_weight& w, std::int64_t p, a8_panel_tile* to) const {
    for (std::int64_t b = 0; b < blocks_; ++b) to[b].take<Type, false>(w.data + (p * blocks_ + b) * quantized::record_bytes(Type));
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
