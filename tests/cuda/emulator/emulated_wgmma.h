#pragma once
// The functions of kernels/cuda/device/wgmma.cuh. A product is computed when it is waited for, from what shared memory holds then; operands in registers are those of
// when it was started. Each of the four warps of a warpgroup has 16 of the 64 rows.
#include <cstdint>
#include <cstring>
#include <vector>

#include "emulated_mma.h"

namespace isotope_emulated {

/// Element (line, k) of an operand whose descriptor this is, where lines are rows of the first operand or columns of the second one.
inline float operand_element(std::uint64_t descriptor, bool cross, int line, int k) {
  if (descriptor >> 62 != 1) isotope_emulated_fail("a descriptor of a product is not of lines that are swizzled by 128 bytes");
  const std::uint32_t start = std::uint32_t(descriptor & 0x3fff) << 4, next = std::uint32_t(descriptor >> 16 & 0x3fff) << 4,
                      group = std::uint32_t(descriptor >> 32 & 0x3fff) << 4;
  const std::uint32_t at =
      cross ? start + std::uint32_t(line / 64) * next + std::uint32_t(k / 8) * group + std::uint32_t(k % 8 * 128 + line % 64 * 2)
            : start + std::uint32_t(line / 8) * group + std::uint32_t(line % 8 * 128 + k * 2);
  // Descriptors have the lower 18 bits of an address, which name a place in the block's own memory.
  const std::uint32_t place = at ^ ((at >> 7 & 7) << 4);
  std::uint16_t bits;
  std::memcpy(&bits, isotope_emulated_position.shared + place, sizeof bits);
  return __uint_as_float(std::uint32_t(bits) << 16);
}
/// One product of the warp, of which each lane has an entry at the same place.
inline void multiply(const started_product* const (&all)[32], int warp) {
  constexpr int K = 16, most_columns = 256;
  const started_product& p = *all[0];
  const int N = p.columns;
  float a[16][K];
  static float b[K][most_columns];  // one thread runs at a time
  if (p.registers) {
    for (int lane = 0; lane < 32; ++lane)
      for (int i = 0; i < 4; ++i) {
        const int row = lane / 4 + i % 2 * 8, column = lane % 4 * 2 + i / 2 * 8;
        a[row][column] = bf16_low(all[lane]->of_a[i]), a[row][column + 1] = bf16_high(all[lane]->of_a[i]);
      }
  } else {
    for (int row = 0; row < 16; ++row)
      for (int k = 0; k < K; ++k) a[row][k] = operand_element(p.a, p.cross_a, 16 * warp + row, k);
  }
  for (int k = 0; k < K; ++k)
    for (int n = 0; n < N; ++n) b[k][n] = operand_element(p.b, p.cross_b, n, k);
  float sums[16][most_columns];
  for (int row = 0; row < 16; ++row) {
    for (int n = 0; n < N; ++n) sums[row][n] = 0.0f;
    for (int k = 0; k < K; ++k)
      for (int n = 0; n < N; ++n) sums[row][n] += a[row][k] * b[k][n];
  }
  for (int lane = 0; lane < 32; ++lane) {
    float* const d = all[lane]->d;
    for (int j = 0; j < N / 8; ++j)
      for (int i = 0; i < 4; ++i) {
        float& x = d[4 * j + i];
        const float product = sums[lane / 4 + i / 2 * 8][8 * j + lane % 4 * 2 + i % 2];
        x = p.add ? x + product : product;
      }
  }
}
struct products_of_lane {
  product_groups* all;
  std::size_t finished;  // groups that are waited for
  int warp;
};
inline void finish_products(void* const* operands) {
  whole_warp(operands);
  const auto of = [&](int lane) -> product_groups& { return *static_cast<const products_of_lane*>(operands[lane])->all; };
  const auto& first = *static_cast<const products_of_lane*>(operands[0]);
  for (std::size_t g = 0; g < first.finished; ++g)
    for (std::size_t i = 0; i < of(0)[g].size(); ++i) {
      const started_product* all[32];
      for (int lane = 0; lane < 32; ++lane) {
        if (of(lane).size() <= g || of(lane)[g].size() != of(0)[g].size()) isotope_emulated_fail("lanes have started different products");
        all[lane] = &of(lane)[g][i];
      }
      multiply(all, first.warp);
    }
  for (int lane = 0; lane < 32; ++lane) of(lane).erase(of(lane).begin(), of(lane).begin() + std::ptrdiff_t(first.finished));
}

}  // namespace isotope_emulated

namespace isotope::cuda::gpu {

inline void wgmma_fence() {}
inline void wgmma_commit() { isotope_emulated::isotope_emulated_products()->emplace_back(); }
template <int N> inline void wgmma_wait(int line = __builtin_LINE()) {
  isotope_emulated::product_groups* const all = isotope_emulated::isotope_emulated_products();
  const std::size_t closed = all->size() - 1;  // the open one is not waited for
  isotope_emulated::products_of_lane mine{all, closed > N ? closed - N : 0, int(threadIdx.x) % 128 / 32};
  isotope_emulated::isotope_emulated_meet(isotope_emulated::finish_products, 0xffffffffu, &mine, "wgmma_wait", line);
}
template <int Count> inline void hold(float (&)[Count]) {}

inline void start_product(float* d, int columns, std::uint64_t a, std::uint64_t b, bool add, bool cross_a, bool cross_b) {
  isotope_emulated::isotope_emulated_products()->back().push_back({d, a, b, {}, columns, false, cross_a, cross_b, add});
}
inline void start_product(float* d, int columns, const std::uint32_t (&a)[4], std::uint64_t b, bool add, bool cross_b) {
  isotope_emulated::isotope_emulated_products()->back().push_back({d, 0, b, {a[0], a[1], a[2], a[3]}, columns, true, false, cross_b, add});
}
template <bool CrossA, bool CrossB, int Count> void wgmma_bf16(float (&d)[Count], std::uint64_t a, std::uint64_t b, bool add) {
  start_product(d, 2 * Count, a, b, add, CrossA, CrossB);
}
template <bool CrossA, bool CrossB> void wgmma_bf16(float (&d)[2][64], std::uint64_t a, std::uint64_t b, bool add) {
  start_product(d[0], 256, a, b, add, CrossA, CrossB);
}
template <bool CrossB> void wgmma_bf16(float (&d)[64], const std::uint32_t (&a)[4], std::uint64_t b, bool add) {
  start_product(d, 128, a, b, add, CrossB);
}
inline void multiply_columns(float (&d)[8][4], const std::uint32_t (&a)[4], std::uint64_t b) { start_product(d[0], 64, a, b, true, true); }

}  // namespace isotope::cuda::gpu
