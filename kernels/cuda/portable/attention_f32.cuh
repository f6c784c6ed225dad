#pragma once
// The two products of attention in f32 between rows in shared memory, with tiles of up to 4 x 8 in registers: 12 reads of 16 bytes for 128
// multiply-adds. A warp is 4 threads down its own rows and 8 across the other side. Lanes that differ in bit 0 share rows of the other
// side, lanes that differ in bits 1 to 3 share own rows, so that half a warp requests at most 128 different bytes. The rows of a thread are
// groups of four neighbours. Row j of a thread is in slot across + 8 j of a tile, its own row i in slot down + 4 i of the warp's rows, so
// rows that are read at a time are in neighbouring slots. A row has 16 bytes of padding, so these start in different banks.
#include "../attention/operands.cuh"
#include "../device/formulas.cuh"
#include "../device/mma.cuh"
#include "attention_f32.h"

namespace isotope::cuda::gpu {

/// e^x for x <= 0; results below 2^-126 are 0.
__device__ inline float exp_of(float x) { return formulas::exp2(formulas::number(__fmul_rn(x, log2_e))).value; }

template <int D, int W, int ROWS, int COLUMNS, int STEPS = 2, int STEPS2 = 2> struct f32_products {
  static constexpr int R = ROWS, X = COLUMNS;
  static constexpr int vectors = D / 4, pitch = vectors + 1, weight_pitch = (attention_f32_tile::part + 8) / 4;  // in units of four floats
  static constexpr int C = D / 32, parts = X / 4;  // vectors of columns of a thread; parts of 32 rows of a tile
  static constexpr int threads = 32 * W, own_rows = 4 * R * W, other_rows = 8 * X;
  using scores = float[R][X];
  using results = float4[R][C];

  const int lane = int(threadIdx.x) % 32, first_own = int(threadIdx.x) / 32 * 4 * R;  // of the warp
  const int down = (lane & 1) | (lane >> 4 << 1), across = lane >> 1 & 7;

  __device__ int own(int i) const { return first_own + 4 * down + i % 4 + i / 4 * 16; }
  __device__ int other(int j) const { return 4 * across + j % 4 + j / 4 * 32; }
  __device__ int own_slot(int i) const { return first_own + down + 4 * i; }
  /// The slot of row n where LANES threads share the rows.
  template <int LANES> __device__ static int slot(int n) { return n / (4 * LANES) * (4 * LANES) + n % 4 * LANES + n / 4 % LANES; }

  /// Starts the copy of COUNT rows from row `first` of a head on. Rows behind the last one and columns from `width` on are zeros.
  template <int COUNT, int LANES>
  __device__ static void fetch(float4* tile, const float* base, std::int64_t stride, int first, int rows, int width) {
    if constexpr (threads % vectors == 0) {
      // The rows of a thread are `step` apart, a power of two. As slot() permutes bits, slot(a + b) = slot(a) + slot(b) for a < step and
      // multiples b of it.
      constexpr int step = threads / vectors;
      const int r = int(threadIdx.x) / vectors, c = int(threadIdx.x) % vectors, left = 4 * c < width ? rows - first - r : 0;
      const float* from = base + (first + r) * stride + 4 * c;
      float4* to = tile + slot<LANES>(r) * pitch + c;
#pragma unroll
      for (int i = 0; i < COUNT; i += step, from += step * stride)
        copy_async_16(to + slot<LANES>(i) * pitch, i < left ? from : base, i < left);
    } else {
      for (int n = int(threadIdx.x); n < COUNT * vectors; n += threads) {
        const int r = n / vectors, c = n % vectors;
        const bool valid = first + r < rows && 4 * c < width;
        copy_async_16(tile + slot<LANES>(r) * pitch + c, valid ? base + (first + r) * stride + 4 * c : base, valid);
      }
    }
  }
  __device__ static void fetch_own(float4* tile, const float* base, std::int64_t stride, int first, int rows, int width) {
    fetch<own_rows, 4>(tile, base, stride, first, rows, width);
  }
  __device__ static void fetch_other(float4* tile, const float* base, std::int64_t stride, int first, int rows, int width) {
    fetch<other_rows, 8>(tile, base, stride, first, rows, width);
  }

  /// x[i][j] = own row i times row j of the other side.
  __device__ void multiply(scores& x, const float4* left, const float4* right) const {
    left += own_slot(0) * pitch;
    right += across * pitch;
#pragma unroll
    for (int i = 0; i < R; ++i)
#pragma unroll
      for (int j = 0; j < X; ++j) x[i][j] = 0;
#pragma unroll STEPS
    for (int c = 0; c < vectors; ++c) {
      float4 r[X];
#pragma unroll
      for (int j = 0; j < X; ++j) r[j] = right[8 * j * pitch + c];
#pragma unroll
      for (int i = 0; i < R; ++i) {
        const float4 l = left[4 * i * pitch + c];
#pragma unroll
        for (int j = 0; j < X; ++j) x[i][j] = fmaf(l.x, r[j].x, x[i][j]);
#pragma unroll
        for (int j = 0; j < X; ++j) x[i][j] = fmaf(l.y, r[j].y, x[i][j]);
#pragma unroll
        for (int j = 0; j < X; ++j) x[i][j] = fmaf(l.z, r[j].z, x[i][j]);
#pragma unroll
        for (int j = 0; j < X; ++j) x[i][j] = fmaf(l.w, r[j].w, x[i][j]);
      }
    }
  }
  /// sums[i] += the weights x[i] times the rows of the other side. The weights pass through the warp's part of shared memory.
  __device__ void add_rows(results& sums, const scores& x, float4* weights, const float4* rows) const {
    weights += own_slot(0) * weight_pitch;
    rows += across;
#pragma unroll
    for (int part = 0; part < parts; ++part) {
      __syncwarp();  // all lanes have read the last weights
#pragma unroll
      for (int i = 0; i < R; ++i)
        weights[4 * i * weight_pitch + across] = {x[i][4 * part], x[i][4 * part + 1], x[i][4 * part + 2], x[i][4 * part + 3]};
      __syncwarp();
      const float4* at = rows + 32 * part * pitch;
#pragma unroll STEPS2
      for (int k = 0; k < 8; ++k) {
        float4 w[R];
#pragma unroll
        for (int i = 0; i < R; ++i) w[i] = weights[4 * i * weight_pitch + k];
        add_row<0>(sums, w, at + k * pitch);
        add_row<1>(sums, w, at + (k + 8) * pitch);
        add_row<2>(sums, w, at + (k + 16) * pitch);
        add_row<3>(sums, w, at + (k + 24) * pitch);
      }
    }
  }
  template <int E> __device__ static void add_row(results& sums, const float4 (&w)[R], const float4* row) {
    float4 v[C];
#pragma unroll
    for (int c = 0; c < C; ++c) v[c] = row[8 * c];
#pragma unroll
    for (int i = 0; i < R; ++i) {
      const float f = E == 0 ? w[i].x : E == 1 ? w[i].y : E == 2 ? w[i].z : w[i].w;
#pragma unroll
      for (int c = 0; c < C; ++c) {
        float4& s = sums[i][c];
        s = {fmaf(f, v[c].x, s.x), fmaf(f, v[c].y, s.y), fmaf(f, v[c].z, s.z), fmaf(f, v[c].w, s.w)};
      }
    }
  }
  /// Stores own row i times factor.
  __device__ void store(float* base, std::int64_t stride, int first, int rows, int width, int i, const float4 (&sums)[C],
                        float factor) const {
    const int row = first + own(i);
#pragma unroll
    for (int c = 0; c < C; ++c) {
      const int column = 4 * across + 32 * c;
      const float4 s = sums[c];
      if (row < rows && column < width)
        *reinterpret_cast<float4*>(base + row * stride + column) = {s.x * factor, s.y * factor, s.z * factor, s.w * factor};
    }
  }
  __device__ static void clear(results& sums) {
#pragma unroll
    for (int i = 0; i < R; ++i)
#pragma unroll
      for (int c = 0; c < C; ++c) sums[i][c] = {0, 0, 0, 0};
  }

  /// The sum of x over the threads of a row, or their largest.
  __device__ static float row_sum(float x) {
#pragma unroll
    for (int i = 2; i <= 8; i *= 2) x += __shfl_xor_sync(0xffffffffu, x, i);
    return x;
  }
  __device__ static float row_largest(float x) {
#pragma unroll
    for (int i = 2; i <= 8; i *= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, i));
    return x;
  }
  /// Which of a thread's probabilities are kept, if own rows are queries.
  struct marks {
    std::uint32_t words[(R * X + 31) / 32];
    __device__ bool keeps(int i, int j) const { return (words[(i * X + j) / 32] >> (i * X + j) % 32 & 1u) != 0; }
  };
  /// row: the number of the block's first own row by which dropout draws; k0: the first key of the tile. The loops are not
  /// unrolled to save registers.
  __device__ marks draw_by_query(const attention_dropout& d, std::uint32_t row, int k0) const {
    marks m{};
#pragma unroll
    for (int word = 0; word < (R * X + 31) / 32; ++word)
#pragma unroll 1
      for (int n = 0; n < 32 && n < R * X; n += 4) {
        const int at = 32 * word + n;
        m.words[word] |= d.kept(row + std::uint32_t(own(at / X)), std::uint32_t((k0 + other(at % X)) / 4)) << n;
      }
    return m;
  }
  /// The same if own rows are keys: bit j R + i of the result is that of own key i and query j. row: the number of the tile's first query
  /// by which dropout draws; k0: the block's first own key.
  __device__ std::uint32_t draw_by_key(const attention_dropout& d, std::uint32_t row, int k0) const {
    static_assert(R * X <= 32);
    std::uint32_t marks = 0;
#pragma unroll 1
    for (int n = 0; n < R * X; n += 4) {
      const std::uint32_t kept = d.kept(row + std::uint32_t(other(n / R)), std::uint32_t((k0 + own(n % R)) / 4));
      marks |= kept << n;
    }
    return marks;
  }
};

template <int D, class TILE, int STEPS = 2>
using f32_products_of = f32_products<D, TILE::value.warps, TILE::value.rows, TILE::value.columns, STEPS>;
template <int D> using f32_forward = f32_products_of<D, f32_forward_tile<D>>;
template <int D> using f32_queries = f32_products_of<D, f32_queries_tile<D>>;
template <int D> using f32_keys = f32_products_of<D, f32_keys_tile<D>, 1>;  // two steps need more registers than there are

/// How much of a tile of scores of queries q0 to q1 and keys k0 to k1 is seen: nothing, something or everything.
enum class visible { nothing, something, everything };
__device__ inline visible seen(const attention_arguments& a, int q0, int q1, int k0, int k1) {
  if (k0 >= end_key(a, q1) || k1 < first_key(a, q0)) return visible::nothing;
  return k1 < end_key(a, q0) && k0 >= first_key(a, q1) ? visible::everything : visible::something;
}

}  // namespace isotope::cuda::gpu
