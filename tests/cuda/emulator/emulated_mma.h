#pragma once
// The functions of kernels/cuda/device/mma.cuh: those that a warp executes together wait for all 32 lanes.
#include <cstdint>
#include <cstring>

#include "device_language.h"

namespace isotope_emulated {

inline float bf16_low(std::uint32_t pair) { return __uint_as_float(pair << 16); }
inline float bf16_high(std::uint32_t pair) { return __uint_as_float(pair & 0xffff0000u); }
inline void whole_warp(void* const* operands) {
  for (int lane = 0; lane < 32; ++lane)
    if (operands[lane] == nullptr) isotope_emulated_fail("an instruction of a whole warp is executed by a part of it");
}

struct product {
  float* d;
  const std::uint32_t *a, *b;
};
inline void multiply_16x8x16(void* const* operands) {
  whole_warp(operands);
  float a[16][16], b[16][8];
  for (int lane = 0; lane < 32; ++lane) {
    const product& p = *static_cast<const product*>(operands[lane]);
    const int g = lane / 4, t = lane % 4;
    for (int k = 0; k < 4; ++k) {
      const int row = g + (k & 1) * 8, column = 2 * t + (k >> 1) * 8;
      a[row][column] = bf16_low(p.a[k]);
      a[row][column + 1] = bf16_high(p.a[k]);
    }
    for (int k = 0; k < 2; ++k) {
      b[2 * t + 8 * k][g] = bf16_low(p.b[k]);
      b[2 * t + 8 * k + 1][g] = bf16_high(p.b[k]);
    }
  }
  float sums[16][8] = {};
  for (int row = 0; row < 16; ++row)
    for (int k = 0; k < 16; ++k)
      for (int column = 0; column < 8; ++column) sums[row][column] += a[row][k] * b[k][column];
  for (int lane = 0; lane < 32; ++lane) {
    float* const d = static_cast<const product*>(operands[lane])->d;
    const int g = lane / 4, t = lane % 4;
    for (int k = 0; k < 4; ++k) d[k] += sums[g + (k >> 1) * 8][2 * t + (k & 1)];
  }
}

struct matrix_load {
  std::uint32_t* r;
  const unsigned char* row;
};
template <bool Transposed> void load_matrices(void* const* operands) {
  whole_warp(operands);
  for (int matrix = 0; matrix < 4; ++matrix) {
    std::uint16_t m[8][8];
    for (int row = 0; row < 8; ++row) {
      const unsigned char* const from = static_cast<const matrix_load*>(operands[8 * matrix + row])->row;
      if (reinterpret_cast<std::uintptr_t>(from) % 16 != 0)
        isotope_emulated_fail("load_matrix_x4 reads a row that is not aligned to 16 bytes");
      std::memcpy(m[row], from, 16);
    }
    for (int lane = 0; lane < 32; ++lane) {
      const int row = lane / 4, column = 2 * (lane % 4);
      const std::uint16_t low = Transposed ? m[column][row] : m[row][column], high = Transposed ? m[column + 1][row] : m[row][column + 1];
      static_cast<const matrix_load*>(operands[lane])->r[matrix] = std::uint32_t(high) << 16 | low;
    }
  }
}
struct transposition {
  std::uint32_t two, *r;
};
inline void transpose_matrix(void* const* operands) {
  whole_warp(operands);
  std::uint16_t m[8][8];
  for (int lane = 0; lane < 32; ++lane) {
    const std::uint32_t two = static_cast<const transposition*>(operands[lane])->two;
    m[lane / 4][2 * (lane % 4)] = std::uint16_t(two), m[lane / 4][2 * (lane % 4) + 1] = std::uint16_t(two >> 16);
  }
  for (int lane = 0; lane < 32; ++lane)
    *static_cast<const transposition*>(operands[lane])->r =
        std::uint32_t(m[2 * (lane % 4) + 1][lane / 4]) << 16 | m[2 * (lane % 4)][lane / 4];
}
inline void check_copy(const void* shared, const void* global) {
  if (reinterpret_cast<std::uintptr_t>(shared) % 16 != 0)
    isotope_emulated_fail("copy_async_16 writes to an address that is not aligned to 16 bytes");
  if (reinterpret_cast<std::uintptr_t>(global) % 16 != 0)
    isotope_emulated_fail("copy_async_16 reads from an address that is not aligned to 16 bytes");
}

}  // namespace isotope_emulated

namespace isotope::cuda::gpu {

inline void mma_16x8x16_bf16(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2], int line = __builtin_LINE()) {
  isotope_emulated::product p{d, a, b};
  isotope_emulated::isotope_emulated_meet(isotope_emulated::multiply_16x8x16, 0xffffffffu, &p, "mma_16x8x16_bf16", line);
}
inline void load_matrix_x4(std::uint32_t (&r)[4], const void* row, int line = __builtin_LINE()) {
  isotope_emulated::matrix_load m{r, static_cast<const unsigned char*>(row)};
  isotope_emulated::isotope_emulated_meet(isotope_emulated::load_matrices<false>, 0xffffffffu, &m, "load_matrix_x4", line);
}
inline void load_matrix_x4_transposed(std::uint32_t (&r)[4], const void* row, int line = __builtin_LINE()) {
  isotope_emulated::matrix_load m{r, static_cast<const unsigned char*>(row)};
  isotope_emulated::isotope_emulated_meet(isotope_emulated::load_matrices<true>, 0xffffffffu, &m, "load_matrix_x4_transposed", line);
}
inline std::uint32_t transposed_matrix(std::uint32_t two, int line = __builtin_LINE()) {
  std::uint32_t r = 0;
  isotope_emulated::transposition m{two, &r};
  isotope_emulated::isotope_emulated_meet(isotope_emulated::transpose_matrix, 0xffffffffu, &m, "transposed_matrix", line);
  return r;
}

inline std::uint32_t shared_address(const void* p) { return isotope_emulated::isotope_emulated_shared_address(p); }
inline float4 load_here(const float4* p) { return *p; }
inline void copy_async_16(void* shared, const void* global) {
  isotope_emulated::check_copy(shared, global);
  isotope_emulated::isotope_emulated_copy(shared, global, 16);
}
inline void copy_async_16(void* shared, const void* global, bool valid) {
  isotope_emulated::check_copy(shared, global);
  isotope_emulated::isotope_emulated_copy(shared, valid ? global : nullptr, 16);
}
inline void copy_async_commit() { isotope_emulated::isotope_emulated_commit(); }
inline void copy_async_wait_all() {
  isotope_emulated::isotope_emulated_commit();
  isotope_emulated::isotope_emulated_wait(0);
}
template <int N> inline void copy_async_wait() { isotope_emulated::isotope_emulated_wait(N); }

}  // namespace isotope::cuda::gpu
